-- question: What did the runs of benchmarks reach, the slowest against alike runs or expectations first?
-- columns:
--   run                 File, and number of the run in it
--   busbw_gbytes_per_s  Bus bandwidth with the largest message, GB/s
--   verdict             As `fabricobs query acceptance` has it
--   accused             Wrong or slow
SELECT name AS run, busbw_gbytes_per_s, verdict, verdict NOT IN ('ok', 'not judged') AS accused
FROM benchmark_runs
WHERE busbw_gbytes_per_s > 0
ORDER BY coalesce(wrong > 0, false) DESC, busbw_gbytes_per_s / coalesce(expected_low_gbytes_per_s, usual_gbytes_per_s), path, run
