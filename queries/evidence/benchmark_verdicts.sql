-- question: Which runs of benchmarks are slow or wrong, and on which hosts did they run?
-- A row is a run. `host` is its host where it has one only. `missing` is the share of bandwidth that it lacks of what
-- it is `compared` with, the first that holds: the least that sound sites reach, the run of the same hosts before it, the
-- best alike run. A test of latency has no bandwidth: `small_us` is its time of a small message, `missing` the share of
-- it that is more than is usual at most (`small_high_us`). `alike` counts the runs of the same test, ranks, nodes, GPUs, library version and size.
WITH lacking AS (
  SELECT *, greatest(1 - busbw_gbytes_per_s / expected_low_gbytes_per_s, 0) AS of_sound,
    greatest(1 - busbw_gbytes_per_s / before_gbytes_per_s, 0) AS of_before,
    CASE WHEN alike > 1 THEN 1 - busbw_gbytes_per_s / best_gbytes_per_s END AS of_alike,
    CASE WHEN busbw_gbytes_per_s IS NULL THEN greatest(1 - small_high_us / small_us, 0) END AS of_time
  FROM benchmark_runs
  WHERE busbw_gbytes_per_s > 0 OR test LIKE 'ib_%_lat'
)
SELECT job, name,
  CASE WHEN len(hosts) = 1 THEN hosts[1] END AS host, CASE WHEN len(hosts) = 1 THEN 'host' ELSE 'job' END AS type,
  CASE WHEN len(hosts) > 3 THEN array_to_string(hosts[:2], ', ') || ' and ' || (len(hosts) - 2) || ' more hosts'
    ELSE array_to_string(hosts, ', ') END AS hosts,
  CASE WHEN len(hosts) > 1 THEN list_transform(hosts, lambda h: {'type': 'host', 'host': h}) END AS related,
  coalesce(op, test, 'the collective') AS op, nodes, bytes, busbw_gbytes_per_s,
  expected_low_gbytes_per_s AS low_gbytes_per_s, expected_high_gbytes_per_s AS high_gbytes_per_s, expected_source,
  alike, wrong, ts AS ts_before, ts,
  CASE WHEN busbw_gbytes_per_s IS NULL THEN small_us END AS small_us, CASE WHEN busbw_gbytes_per_s IS NULL THEN small_high_us END AS small_high_us,
  CASE WHEN of_time IS NOT NULL THEN 'the usual time of a small message'
    WHEN of_sound >= $missing THEN 'the least that sound sites reach'
    WHEN of_before >= $missing THEN 'the run of the same hosts before'
    ELSE 'the best alike run' END AS compared,
  CASE WHEN of_time IS NOT NULL THEN of_time WHEN of_sound >= $missing THEN of_sound WHEN of_before >= $missing THEN of_before ELSE of_alike END AS missing
FROM lacking
ORDER BY path, run, test
