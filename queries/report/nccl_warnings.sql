-- question: How often does each host of the job $job warn of what, as NCCL's logs tell?
-- Without a job, over all jobs.
-- columns:
--   host      Host that warned
--   what      Kind of the warning
--   warnings  How often
SELECT host_name(host) AS host, replace(kind, '_', ' ') AS what, count(*) AS warnings
FROM nccl_events
WHERE level IN ('WARN', 'ERROR') AND ($job::VARCHAR IS NULL OR job = $job::VARCHAR)
GROUP BY ALL
ORDER BY warnings DESC, host, what
