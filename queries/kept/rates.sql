-- As series.sql; a counter that moves in {name}_series: a line with {moving}; another: {still}.
-- Each counter of {name}_samples: a line with {counter}.

-- Rises between samples of the series with a counter that moves (`moving` of {name}_series).
CREATE TABLE {name}_moves AS
WITH moments AS (
  -- One row a moment: duplicated snapshots and counters from several files of one dump fall together.
  SELECT n.series, n.ts, max(n.ts_source) AS ts_source,
    max(n.{moving}) AS {moving},
  FROM (SELECT hash({keys}) AS series, * FROM {samples} WHERE ts IS NOT NULL) n
  SEMI JOIN (SELECT series FROM {name}_series WHERE len(moving) > 0) s ON s.series = n.series
  GROUP BY n.series, n.ts
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
JOIN {name}_series s ON s.series = p.series
JOIN {name}_intervals i ON i.clock = s.clock AND i.ts = p.ts
LEFT JOIN {name}_counting c ON c.format = s.format;

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
  m.ts_before, m.ts, m.ts_source, m.seconds, m.gap,
  m.{moving},
  s.{still},
FROM {name}_moves m JOIN {name}_series s ON s.series = m.series;
