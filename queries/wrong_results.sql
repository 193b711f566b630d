-- question: Which benchmark runs computed wrong results, at which sizes?
-- columns:
--   path                file of the run
--   run                 number of the run in its file
--   line                line of the row
--   ts                  when it ran, where its output tells it; UTC
--   host                host it ran on, where it is one alone
--   hosts               hosts it ran on
--   test                all_reduce_perf, ...
--   op                  collective; null of perftest
--   nranks              ranks
--   bytes               message, bytes
--   busbw_gbytes_per_s  bus bandwidth, GB/s
--   wrong               wrong elements out of place, by the check of the benchmark
--   in_place_wrong      wrong elements in place
-- lines:
--   benchmarks   wrong >= 1 OR in_place_wrong >= 1
-- example: fabricobs query wrong_results
--
-- A row is one message size of a run. Runs that are right, or that did not check (`-c 0`), are left out:
-- `fabricobs query acceptance` has all.
SELECT path, run, line, CASE WHEN ts_source IN ('inline', 'header') THEN ts END AS ts,
  CASE WHEN len(hosts) = 1 THEN hosts[1] END AS host, array_to_string(hosts, ', ') AS hosts,
  test, op, nranks, bytes, coalesce(busbw_gbytes_per_s, in_place_busbw_gbytes_per_s) AS busbw_gbytes_per_s,
  wrong, in_place_wrong
FROM benchmark_rows
WHERE wrong >= 1 OR in_place_wrong >= 1
ORDER BY path, run, line;
