-- question: Which steps took much longer than the steps around them?
-- columns:
--   job                  job
--   step                 step number
--   ts                   when it was logged, UTC
--   step_time_ms         its duration, ms
--   usual_ms             median of the 21 logged steps around it, itself included, ms
--   ratio                step_time_ms over usual_ms
--   robust_z             distance from that median in robust standard deviations
--   slowest_rank         rank with the longest compute in that step, where ranks are logged
--   slowest_rank_ratio   its compute over the median of the ranks; near 1: none stands out
--   nearby_events        restarts, checkpoints and the like within one step of it
-- example: fabricobs query steps_that_stand_out
--
-- Listed: above 1.2 times usual_ms and beyond 6 robust standard deviations (1.4826 times the median
-- absolute deviation, taken as at least 0.5 % of the median). The first steps of a run are warm-up.
-- A change that stays is not an outlier and is not listed.
WITH around AS (
  SELECT job, step, ts, step_time_ms,
    median(step_time_ms) OVER w AS usual_ms,
    mad(step_time_ms) OVER w AS deviation_ms
  FROM step_times
  WINDOW w AS (PARTITION BY job ORDER BY step ROWS BETWEEN 10 PRECEDING AND 10 FOLLOWING)
),
outliers AS (
  SELECT job, step, ts, step_time_ms, usual_ms,
    step_time_ms / usual_ms AS ratio,
    (step_time_ms - usual_ms) / (1.4826 * greatest(deviation_ms, 0.005 * usual_ms)) AS robust_z
  FROM around
  WHERE usual_ms > 0 AND step_time_ms > 1.2 * usual_ms
),
computes AS (
  SELECT s.job, s.step, arg_max(s.rank, coalesce(s.compute_ms, s.own_ms)) AS slowest_rank,
    max(coalesce(s.compute_ms, s.own_ms)) / nullif(median(coalesce(s.compute_ms, s.own_ms)), 0)
      AS slowest_rank_ratio
  FROM rank_work s
  WHERE s.own_ms IS NOT NULL
    AND s.step IN (SELECT step FROM outliers)
  GROUP BY s.job, s.step
),
happenings AS (
  SELECT o.job, o.step, string_agg(DISTINCT e.kind, ', ' ORDER BY e.kind) AS nearby_events
  FROM outliers o
  JOIN events e ON e.job IS NOT DISTINCT FROM o.job AND e.step BETWEEN o.step - 1 AND o.step + 1
  GROUP BY o.job, o.step
)
SELECT o.job, o.step, o.ts, o.step_time_ms, o.usual_ms, o.ratio, o.robust_z,
  c.slowest_rank, c.slowest_rank_ratio, h.nearby_events
FROM outliers o
LEFT JOIN computes c ON c.job IS NOT DISTINCT FROM o.job AND c.step = o.step
LEFT JOIN happenings h ON h.job IS NOT DISTINCT FROM o.job AND h.step = o.step
WHERE o.robust_z > 6
ORDER BY o.job, o.step;
