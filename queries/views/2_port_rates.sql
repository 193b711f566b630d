-- Counters of ports and NICs as rises between samples.
--
-- A row is the interval between two samples of one port: `ts_before` to `ts`, `seconds` long.
-- Every counter column is the rise in that interval, NULL where it cannot be known (see rise).
-- `gap` marks an interval more than three times the usual one: rates hold, maxima do not.
-- Each counter of port_samples: a line with {counter}.
CREATE OR REPLACE VIEW port_rates AS
WITH
-- Looked up once a format: a map asked in every row costs more than all else here.
info AS (
  SELECT format, {
    {counter}: rules['{counter}'],
  } AS of
  FROM counter_rules WHERE table_name = 'port_samples'
),
-- One row a moment: duplicated snapshots and counters from several files of one dump fall together.
moments AS (
  SELECT job, format, device, port, ts, max(ts_source) AS ts_source,
    max({counter}) AS {counter},
  FROM named_samples
  WHERE ts IS NOT NULL
  GROUP BY job, format, device, port, ts
),
paired AS (
  SELECT *, lag(ts) OVER w AS ts_before, epoch(ts) - epoch(lag(ts) OVER w) AS seconds,
    lag({counter}) OVER w AS {counter}_before,
  FROM moments
  WINDOW w AS (PARTITION BY job, format, device, port ORDER BY ts)
),
-- Joined: the same as a window's median sorts all columns once more.
usual AS (
  SELECT job, format, device, port, median(seconds) AS usual_seconds FROM paired WHERE seconds > 0 GROUP BY ALL
)
SELECT p.job, p.format, p.device, p.port, ts_before, ts, ts_source, seconds,
  seconds > 3 * usual_seconds AS gap,
  rise({counter}_before, {counter}, of.{counter}, seconds) AS {counter},
FROM paired p LEFT JOIN info ON info.format = p.format
JOIN usual u ON u.job IS NOT DISTINCT FROM p.job
  AND u.format IS NOT DISTINCT FROM p.format
  AND u.device IS NOT DISTINCT FROM p.device
  AND u.port IS NOT DISTINCT FROM p.port
WHERE seconds > 0;
