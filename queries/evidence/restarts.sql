-- question: At which step did a job go back and do steps again?
-- After a restart a job goes on from its last checkpoint: a step that was done is done again. The first rank
-- tells; the lines of a file without times do, unless so many go back that those of several ranks mingle in it.
WITH told AS (
  SELECT job, CASE WHEN ts IS NULL THEN file_id END AS untimed, step, ts, line FROM steps
  WHERE step IS NOT NULL AND step_time_ms IS NOT NULL
  QUALIFY dense_rank() OVER (PARTITION BY job ORDER BY rank) = 1
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
