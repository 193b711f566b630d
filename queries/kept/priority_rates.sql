-- Each counter of priority_samples: a line with {counter}; one that moves in priority_series: {moving}; another: {still}.

-- Rises between samples of priorities and queues with a counter that moves (`moving` of priority_series).
CREATE TABLE priority_moves AS
WITH moments AS (
  -- One row a moment: duplicated snapshots and counters from several files of one dump fall together.
  SELECT n.series, n.ts, max(n.ts_source) AS ts_source,
    max(n.{moving}) AS {moving},
  FROM (SELECT hash(job, format, device, port, priority, queue) AS series, * FROM named_priority_samples WHERE ts IS NOT NULL) n
  SEMI JOIN (SELECT series FROM priority_series WHERE len(moving) > 0) s ON s.series = n.series
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
JOIN priority_series s ON s.series = p.series
JOIN priority_intervals i ON i.clock = s.clock AND i.ts = p.ts
LEFT JOIN priority_counting c ON c.format = s.format;

-- As in views/2_priority_rates.sql.
CREATE VIEW priority_rates AS
SELECT s.job, s.format, s.device, s.port, s.priority, s.queue, i.ts_before, i.ts, s.ts_source, i.seconds, i.gap,
  s.{counter},
FROM priority_series s JOIN priority_intervals i ON i.clock = s.clock
WHERE len(s.moving) = 0
UNION ALL BY NAME
SELECT s.job, s.format, s.device, s.port, s.priority, s.queue, m.ts_before, m.ts, m.ts_source, m.seconds, m.gap,
  m.{moving},
  s.{still},
FROM priority_moves m JOIN priority_series s ON s.series = m.series;
