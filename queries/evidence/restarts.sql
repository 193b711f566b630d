-- question: At which step did a job go back and do steps again?
-- After a restart a job goes on from its last checkpoint: a step that was done is done again. The first rank
-- tells; the lines of a file without times do, unless so many go back that those of several ranks mingle in it.
WITH first_ranks AS (
  SELECT job, step_time_ms IS NOT NULL AS timed, min(rank) AS rank FROM steps
  WHERE step IS NOT NULL
  GROUP BY job, timed
  -- A line without the time of its step may be of an evaluation, but where none tells it.
  QUALIFY timed = bool_or(timed) OVER (PARTITION BY job)
),
told AS (
  SELECT s.job, CASE WHEN s.ts IS NULL THEN s.file_id END AS untimed, s.step, s.ts, s.line
  FROM steps s JOIN first_ranks f
    ON f.job IS NOT DISTINCT FROM s.job AND f.timed = (s.step_time_ms IS NOT NULL) AND f.rank IS NOT DISTINCT FROM s.rank
  WHERE s.step IS NOT NULL
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
