-- question: How long did each rank work, communicate and wait for data in each step?
-- `own_ms` is what a rank does before it calls its collective: computation, and loading where told; where
-- `by_rest` all of the step but communication. Where no step record tells of it, traced operations
-- do (view `phases`).
WITH told AS (
  SELECT DISTINCT job FROM rank_work WHERE own_ms IS NOT NULL
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
  coalesce(s.stage, 0) AS stage, s.ts, s.step_time_ms, s.compute_ms, s.comm_ms, s.data_ms, s.own_ms,
  coalesce(s.by_rest, false) AS by_rest
FROM (
  SELECT job, step, rank, host, stage, ts, step_time_ms, compute_ms, comm_ms, data_ms, own_ms, by_rest
  FROM rank_work
  UNION ALL BY NAME
  SELECT *, compute_ms AS own_ms FROM operations
) s
LEFT JOIN job_ranks r ON r.job IS NOT DISTINCT FROM s.job AND r.rank = s.rank
ORDER BY s.job, s.step, s.rank
