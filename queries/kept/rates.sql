-- As series.sql; a counter that moves in {name}_series: a line with {moving}; another: {still}.
-- Each counter of {name}_samples: a line with {counter}.

-- Rises between samples of the series with a counter that moves (`moving` of {name}_series), and their
-- `ts_source` where that changes.
CREATE TABLE {name}_moves AS
WITH sampled AS NOT MATERIALIZED (
  SELECT s.clock, s.format, n.* EXCLUDE (format) REPLACE (CASE WHEN s.ts_source IS NULL THEN n.ts_source END AS ts_source)
  FROM (SELECT hash({keys}) AS series, * FROM {samples} WHERE ts IS NOT NULL) n
  JOIN (SELECT series, clock, format, ts_source FROM {name}_series WHERE len(moving) > 0) s ON s.series = n.series
),
repeating AS (
  SELECT DISTINCT clock FROM {name}_intervals WHERE repeated
),
moments AS (
  SELECT series, clock, format, ts, ts_source,
    {moving},
  FROM sampled ANTI JOIN repeating USING (clock)
  UNION ALL
  -- One row a moment: duplicated snapshots and counters from several files of one dump fall together.
  SELECT series, clock, format, ts, max(ts_source) AS ts_source,
    max({moving}) AS {moving},
  FROM sampled SEMI JOIN repeating USING (clock)
  GROUP BY series, clock, format, ts
),
paired AS (
  SELECT *,
    lag({moving}) OVER w AS {moving}_before,
  FROM moments
  WINDOW w AS (PARTITION BY series ORDER BY ts)
)
SELECT p.series, i.ts_before, p.ts, p.ts_source, i.seconds, i.gap,
  rise(p.{moving}_before, p.{moving}, of.{moving}, i.seconds) AS {moving},
FROM paired p
JOIN {name}_intervals i ON i.clock = p.clock AND i.ts = p.ts
LEFT JOIN {name}_counting c ON c.format = p.format;

-- As in views/2_{name}_rates.sql.
CREATE VIEW {name}_rates AS
SELECT
  s.{key},
  i.ts_before, i.ts, s.ts_source, i.seconds, i.gap,
  s.{counter},
FROM {name}_series s JOIN {name}_intervals i ON i.clock = s.clock
WHERE len(s.moving) = 0
UNION ALL BY NAME
SELECT
  s.{key},
  m.ts_before, m.ts, coalesce(s.ts_source, m.ts_source) AS ts_source, m.seconds, m.gap,
  m.{moving},
  s.{still},
FROM {name}_moves m JOIN {name}_series s ON s.series = m.series;
