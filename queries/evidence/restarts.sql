-- question: At which step did a job go back and do steps again?
-- After a restart a job goes on from its last checkpoint: a step that was done is done again. The first rank
-- tells.
WITH told AS (
  SELECT job, rank, step, ts, line FROM steps
  WHERE step IS NOT NULL AND ts IS NOT NULL AND step_time_ms IS NOT NULL
  QUALIFY dense_rank() OVER (PARTITION BY job ORDER BY rank) = 1
),
order_of_time AS (
  SELECT job, step, ts, lag(step) OVER w AS step_before, lag(ts) OVER w AS ts_before
  FROM told WINDOW w AS (PARTITION BY job ORDER BY ts, line)
)
SELECT job, step, ts_before, ts
FROM order_of_time
WHERE step < step_before
ORDER BY job, ts
