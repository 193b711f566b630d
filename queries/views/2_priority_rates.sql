-- Counters of priorities and queues as rises between samples.
--
-- A row is the interval between two samples of one priority or queue: `ts_before` to `ts`, `seconds` long.
-- Every counter column is the rise in that interval, NULL where it cannot be known (see rise).
-- `gap` marks an interval more than three times the usual one: rates hold, maxima do not.
-- Each counter of priority_samples: a line with {counter}.
CREATE OR REPLACE VIEW priority_rates AS
WITH
-- Looked up once a format: a map asked in every row costs more than all else here.
info AS (
  SELECT format, {
    {counter}: rules['{counter}'],
  } AS of
  FROM counter_rules WHERE table_name = 'priority_samples'
),
-- A number for every priority and queue: grouping and ordering by six names takes a third longer.
series AS (
  SELECT *, row_number() OVER () AS series
  FROM (
    SELECT DISTINCT job, format, device, port, priority, queue
    FROM named_priority_samples WHERE ts IS NOT NULL
  )
),
-- One row a moment: duplicated snapshots and counters from several files of one dump fall together.
moments AS (
  SELECT series, ts, max(ts_source) AS ts_source,
    max({counter}) AS {counter},
  FROM named_priority_samples n
  LEFT JOIN series s ON s.job IS NOT DISTINCT FROM n.job
    AND s.format IS NOT DISTINCT FROM n.format
    AND s.device IS NOT DISTINCT FROM n.device
    AND s.port IS NOT DISTINCT FROM n.port
    AND s.priority IS NOT DISTINCT FROM n.priority
    AND s.queue IS NOT DISTINCT FROM n.queue
  WHERE ts IS NOT NULL
  GROUP BY series, ts
),
paired AS (
  SELECT *, lag(ts) OVER w AS ts_before, epoch(ts) - epoch(lag(ts) OVER w) AS seconds,
    lag({counter}) OVER w AS {counter}_before,
  FROM moments
  WINDOW w AS (PARTITION BY series ORDER BY ts)
),
-- Joined: the same as a window's median sorts all columns once more.
usual AS (
  SELECT series, median(seconds) AS usual_seconds FROM paired WHERE seconds > 0 GROUP BY series
),
known AS (
  SELECT s.*, usual_seconds, of
  FROM series s JOIN usual USING (series) LEFT JOIN info ON info.format = s.format
)
SELECT k.job, k.format, k.device, k.port, k.priority, k.queue, ts_before, ts, ts_source, seconds,
  seconds > 3 * usual_seconds AS gap,
  rise({counter}_before, {counter}, of.{counter}, seconds) AS {counter},
FROM paired JOIN known k USING (series)
WHERE seconds > 0;
