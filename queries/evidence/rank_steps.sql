-- question: How long did each rank compute, communicate and wait for data in each step?
SELECT s.job, s.step, s.rank, coalesce(host_name(s.host), r.host) AS host, coalesce(s.stage, 0) AS stage,
  max(s.ts) AS ts,
  arg_max(s.step_time_ms, s.line) AS step_time_ms,
  arg_max(s.compute_ms, s.line) AS compute_ms,
  arg_max(s.comm_ms, s.line) AS comm_ms,
  arg_max(s.data_ms, s.line) AS data_ms
FROM steps s
LEFT JOIN job_ranks r ON r.job IS NOT DISTINCT FROM s.job AND r.rank = s.rank
WHERE s.rank IS NOT NULL AND s.step IS NOT NULL
GROUP BY s.job, s.step, s.rank, coalesce(host_name(s.host), r.host), coalesce(s.stage, 0)
ORDER BY s.job, s.step, s.rank
