-- question: Which runs of benchmarks are slow, and against what?
-- A row is a run, as in `benchmark_runs`. `missing` is the share of bandwidth that it lacks of what it is `compared` with,
-- the first that holds: the least that sound sites reach, the run of the same hosts before it, the best alike run. A test
-- of latency has no bandwidth: `small_us` is its time of a small message, `missing` the share of it that is more than is
-- usual at most (`small_high_us`). A part that is in every slow run of a sweep has its own finding: what its runs lack is
-- missing only where they lack more than the part takes.
WITH parts AS (
  SELECT unnest(own_runs) AS key, 1 - effect AS left_by_part FROM evidence.slow_parts
),
limits AS (
  SELECT r.*, 1 - coalesce(left_by_part, 1) * (1 - $missing) AS least
  FROM evidence.benchmark_runs r LEFT JOIN parts p ON p.key = {'path': r.path, 'run': r.run, 'test': r.test}
),
lacking AS (
  SELECT *, 1 - busbw_gbytes_per_s / low_gbytes_per_s AS of_sound, 1 - busbw_gbytes_per_s / before_gbytes_per_s AS of_before,
    CASE WHEN alike > 1 THEN 1 - busbw_gbytes_per_s / best_gbytes_per_s END AS of_alike,
    CASE WHEN busbw_gbytes_per_s IS NULL THEN greatest(1 - small_high_us / small_us, 0) END AS of_time
  FROM limits
)
SELECT * EXCLUDE (path, run, test, before_gbytes_per_s, best_gbytes_per_s, least, of_sound, of_before, of_alike, of_time),
  CASE WHEN of_time IS NOT NULL THEN 'the usual time of a small message'
    WHEN of_sound >= least THEN 'the least that sound sites reach'
    WHEN of_before >= least THEN 'the run of the same hosts before'
    ELSE 'the best alike run' END AS compared,
  CASE WHEN of_time IS NOT NULL THEN of_time WHEN of_sound >= least THEN of_sound WHEN of_before >= least THEN of_before
    WHEN of_alike < least THEN 0 ELSE of_alike END AS missing
FROM lacking
ORDER BY name
