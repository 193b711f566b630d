-- question: How did the step time develop over the run?
-- columns:
--   job           job
--   window_start  when the window begins, UTC
--   first_step    first step of the window
--   last_step     last step of the window
--   steps         steps whose time is known
--   step_ms       median step time, ms
--   least_ms      shortest step, ms
--   longest_ms    longest step, ms
-- lines:
--   steps         step_time_ms IS NOT NULL
--   collectives   true
-- peers:
--   steps         step_time_ms
--   collectives   duration_us
-- example: fabricobs query pace_of_steps
--
-- A job has at most 30 windows, of equal numbers of steps. The pace of a job changes where the median does; a
-- checkpoint or a restart makes only the longest step of its window longer.
WITH placed AS (
  SELECT *, place * least(30, max(place) OVER w + 1) // (max(place) OVER w + 1) AS part
  FROM (
    SELECT *, dense_rank() OVER (PARTITION BY job ORDER BY step) - 1 AS place
    FROM step_times WHERE step_time_ms > 0
  )
  WINDOW w AS (PARTITION BY job)
)
SELECT job, min(ts) AS window_start, min(step) AS first_step, max(step) AS last_step, count(*) AS steps,
  median(step_time_ms) AS step_ms, min(step_time_ms) AS least_ms, max(step_time_ms) AS longest_ms
FROM placed
GROUP BY job, part
ORDER BY job, first_step
