-- question: How long did each rank work, communicate and wait for data in each step?
-- `own_ms` is what a rank does before it calls its collective: computation, and loading where told.
-- Where no step record tells of computation, traced operations do (view `phases`).
WITH records AS (
  -- Of files that tell of one step of a rank each may tell a part of it (rank 0 also has the
  -- trainer's log); of a step repeated after a restart the later attempt wins.
  SELECT job, step, rank, arg_max(host, place) AS host, arg_max(stage, place) AS stage,
    arg_max(ts, place) AS ts, arg_max(step_time_ms, place) AS step_time_ms,
    arg_max(compute_ms, place) AS compute_ms, arg_max(comm_ms, place) AS comm_ms,
    arg_max(data_ms, place) AS data_ms
  FROM (
    SELECT *, row(coalesce(ts, '-infinity'::TIMESTAMP), coalesce(line, 0)) AS place FROM steps
    WHERE rank IS NOT NULL AND step IS NOT NULL
  )
  GROUP BY job, step, rank
),
told AS (
  SELECT DISTINCT job FROM records WHERE compute_ms IS NOT NULL
),
operations AS (
  SELECT job, step, rank, max(stage) AS stage, max(ts) AS ts,
    max(start_ms + duration_ms) - min(start_ms) AS step_time_ms,
    sum(duration_ms) FILTER (phase ILIKE '%compute%') AS compute_ms
  FROM phases p
  WHERE step IS NOT NULL AND rank IS NOT NULL AND duration_ms IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM told t WHERE t.job IS NOT DISTINCT FROM p.job)
  GROUP BY job, step, rank
  HAVING sum(duration_ms) FILTER (phase ILIKE '%compute%') > 0
)
SELECT s.job, s.step, s.rank, coalesce(host_name(s.host), r.host) AS host, NULL::BIGINT AS pid,
  coalesce(s.stage, 0) AS stage, s.ts, s.step_time_ms, s.compute_ms, s.comm_ms, s.data_ms,
  s.compute_ms + coalesce(s.data_ms, 0) AS own_ms
FROM (
  FROM records
  UNION ALL BY NAME
  SELECT * FROM operations
) s
LEFT JOIN job_ranks r ON r.job IS NOT DISTINCT FROM s.job AND r.rank = s.rank
ORDER BY s.job, s.step, s.rank
