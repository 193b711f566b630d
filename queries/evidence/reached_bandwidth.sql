-- question: Which bus bandwidth do jobs and benchmarks reach between hosts and inside them, and what is expected?
-- A row is a job by the collective it spends most time in, or a run of a benchmark by its largest message; those
-- for which nothing is expected have none. `best_gbytes_per_s` is what the fastest 5 % of a job's calls reach, or the
-- run of the benchmark; `low_gbytes_per_s` to `high_gbytes_per_s` what sound sites do. `narrow` is how many times less
-- the uplinks of a leaf carry than its NICs, at least 1: a job that crosses them reaches that much less.
SELECT 'job' AS measured_by, job AS name, op, nodes, bytes, busbw_p95_gbytes_per_s AS best_gbytes_per_s,
  expected_low_gbytes_per_s AS low_gbytes_per_s, expected_high_gbytes_per_s AS high_gbytes_per_s, limit_gbytes_per_s,
  (SELECT greatest(coalesce(max(ratio), 1), 1) FROM leaf_capacity) AS narrow
FROM job_bandwidths
UNION ALL
SELECT 'benchmark', name, coalesce(op, test), coalesce(nodes, CASE WHEN test LIKE 'ib_%' THEN 2 END), bytes,
  busbw_gbytes_per_s, expected_low_gbytes_per_s, expected_high_gbytes_per_s,
  -- NVLink SHARP exceeds what one GPU can send.
  greatest(limit_gbytes_per_s, expected_high_gbytes_per_s), 1
FROM benchmark_runs
WHERE busbw_gbytes_per_s > 0 AND expected_low_gbytes_per_s IS NOT NULL
  -- One fast pair of ports (perftest) says nothing of collectives, one slow pair does.
  AND (coalesce(test, '') NOT LIKE 'ib_%' OR busbw_gbytes_per_s < expected_low_gbytes_per_s)
ORDER BY best_gbytes_per_s / low_gbytes_per_s, name, bytes
