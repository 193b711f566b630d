-- question: How long did each rank compute, communicate and wait for data in each step?
SELECT s.job, s.step, s.rank, coalesce(host_name(s.host), r.host) AS host, coalesce(s.stage, 0) AS stage,
  max(s.ts) AS ts,
  any_value(s.step_time_ms) AS step_time_ms,
  any_value(s.compute_ms) AS compute_ms,
  any_value(s.comm_ms) AS comm_ms,
  any_value(s.data_ms) AS data_ms
FROM (
  -- A step repeated after a restart: the later attempt wins.
  SELECT * FROM steps
  QUALIFY row_number() OVER (
    PARTITION BY job, step, rank ORDER BY ts DESC NULLS LAST, line DESC
  ) = 1
) s
LEFT JOIN job_ranks r ON r.job IS NOT DISTINCT FROM s.job AND r.rank = s.rank
WHERE s.rank IS NOT NULL AND s.step IS NOT NULL
GROUP BY s.job, s.step, s.rank, coalesce(host_name(s.host), r.host), coalesce(s.stage, 0)
ORDER BY s.job, s.step, s.rank
