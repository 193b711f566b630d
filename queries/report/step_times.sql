-- question: How long did the steps of each job take, in at most $most points?
-- columns:
--   job           Name of the job, empty if it has none
--   first_step    First step of the point
--   last_step     Last step of the point
--   steps         Steps in the point
--   moment        When the first of them ended, UTC
--   step_time_ms  Median step time, ms
--   least_ms      Shortest step, ms
--   longest_ms    Longest step, ms
WITH placed AS (
  SELECT coalesce(job, '') AS job, step, ts, step_time_ms,
    row_number() OVER (PARTITION BY job ORDER BY step) - 1 AS place,
    count(*) OVER (PARTITION BY job) AS steps_of_job,
    $most // (SELECT count(DISTINCT coalesce(job, '')) FROM step_times) AS points
  FROM step_times
  WHERE step_time_ms IS NOT NULL
)
SELECT job, min(step) AS first_step, max(step) AS last_step, count(*) AS steps, min(ts) AS moment,
  median(step_time_ms) AS step_time_ms, min(step_time_ms) AS least_ms,
  max(step_time_ms) AS longest_ms
FROM placed
GROUP BY job, place * least(greatest(points, 1), steps_of_job) // steps_of_job
ORDER BY job, first_step
