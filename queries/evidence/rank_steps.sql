-- question: How long did each rank work, communicate and wait for data in each step?
-- `own_ms` is what a rank does before it calls its collective: computation, and loading where told; where
-- `by_rest` all of the step but communication. `moved`: the rank works longer in another run of the job, too, on another host.
SELECT w.job, w.step, w.rank, coalesce(host_name(w.host), r.host) AS host, NULL::BIGINT AS pid,
  coalesce(w.stage, 0) AS stage, coalesce(w.ts, d.ts) AS ts, w.step_time_ms, w.compute_ms, w.comm_ms, w.data_ms, w.own_ms, w.by_rest,
  w.rank IN (FROM moved_ranks) AS moved
FROM rank_work w
LEFT JOIN job_ranks r ON r.job IS NOT DISTINCT FROM w.job AND r.rank = w.rank
LEFT JOIN step_ends d ON d.job IS NOT DISTINCT FROM w.job AND d.step = w.step
ORDER BY w.job, w.step, w.rank
