-- question: At which step did a job go back and do steps again?
-- After a restart a job goes on from its last checkpoint: a step that was done is done again. The first rank
-- tells; the lines of a file without times do, unless so many go back that those of several ranks mingle in it.
WITH told AS (
  SELECT job, CASE WHEN ts IS NULL THEN file_id END AS untimed, step, ts, line FROM steps
  WHERE step IS NOT NULL
  -- A line without the time of its step may be of an evaluation, but where none tells it.
  QUALIFY (step_time_ms IS NOT NULL) = bool_or(step_time_ms IS NOT NULL) OVER (PARTITION BY job)
    AND dense_rank() OVER (PARTITION BY job, step_time_ms IS NOT NULL ORDER BY rank) = 1
),
in_order AS (
  SELECT job, untimed, step, ts, lag(step) OVER w AS step_before, lag(ts) OVER w AS ts_before,
    count(*) OVER (PARTITION BY job, untimed) AS lines
  FROM told WINDOW w AS (PARTITION BY job, untimed ORDER BY ts, line)
)
SELECT job, step, ts_before, ts
FROM in_order
WHERE step < step_before
QUALIFY untimed IS NULL OR count(*) OVER (PARTITION BY job, untimed) <= 0.1 * lines
ORDER BY job, ts, step
