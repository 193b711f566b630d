-- question: On which hosts did each run of a benchmark run, and what did it reach?
-- A row is a run. `host` is its host where it has one only. `alike` counts the runs of the same test, ranks, nodes, GPUs,
-- library version and size; `wrong` the elements that its check found wrong.
SELECT job, path, run, test, name,
  CASE WHEN len(hosts) = 1 THEN hosts[1] END AS host, CASE WHEN len(hosts) = 1 THEN 'host' ELSE 'job' END AS type,
  CASE WHEN len(hosts) > 3 THEN array_to_string(hosts[:2], ', ') || ' and ' || (len(hosts) - 2) || ' more hosts'
    ELSE array_to_string(hosts, ', ') END AS hosts,
  CASE WHEN len(hosts) > 1 THEN list_transform(hosts, lambda h: {'type': 'host', 'host': h}) END AS related,
  coalesce(op, test, 'the collective') AS op, nodes, bytes, busbw_gbytes_per_s,
  expected_low_gbytes_per_s AS low_gbytes_per_s, expected_high_gbytes_per_s AS high_gbytes_per_s, expected_source,
  before_gbytes_per_s, best_gbytes_per_s, alike, wrong, ts AS ts_before, ts,
  CASE WHEN busbw_gbytes_per_s IS NULL THEN small_us END AS small_us,
  CASE WHEN busbw_gbytes_per_s IS NULL THEN small_high_us END AS small_high_us
FROM benchmark_runs
WHERE busbw_gbytes_per_s > 0 OR test LIKE 'ib_%_lat' OR wrong > 0
ORDER BY path, run, test
