-- question: How long did each step of each job take, and how much work was it?
-- `tokens`, `operations` and `samples` are only comparable between the steps of one job.
-- `transfer_ms` is told where steps are those of collectives. Their largest message changes with the batch:
-- where it does, `samples` is the usual time of the steps with a message as large. A rate in a line without the
-- time of its step is of the time from the line before.
SELECT t.job, t.step, t.ts, t.step_time_ms, t.source, c.transfer_ms, w.tokens, w.operations,
  coalesce(w.samples, CASE
    WHEN count(c.bytes) OVER (PARTITION BY t.job, c.bytes) >= 5
    THEN median(t.step_time_ms) OVER (PARTITION BY t.job, c.bytes)
  END) AS samples
FROM step_times t
LEFT JOIN (
  SELECT s.job, s.step, median(s.tokens_per_second * ms) AS tokens, median(s.tflops_per_gpu * ms) AS operations,
    coalesce(max(s.samples), median(s.samples_per_second * ms)) AS samples
  FROM (
    SELECT s.*, coalesce(s.step_time_ms, t.step_time_ms) AS ms
    FROM steps s JOIN step_times t ON t.job IS NOT DISTINCT FROM s.job AND t.step = s.step
  ) s
  WHERE ms > 0
  GROUP BY s.job, s.step
) w ON w.job IS NOT DISTINCT FROM t.job AND w.step = t.step
LEFT JOIN collective_steps c ON c.job IS NOT DISTINCT FROM t.job AND c.step = t.step
ORDER BY t.job, t.step
