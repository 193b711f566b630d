-- question: How long did each step of each job take, and how much work was it?
-- `tokens`, `operations` and `samples` are only comparable between the steps of one job.
-- `transfer_ms` is told where steps are those of collectives. Their largest message changes with the batch:
-- where it does, `samples` is the usual time of the steps with a message as large.
SELECT t.job, t.step, t.ts, t.step_time_ms, t.source, c.transfer_ms, w.tokens, w.operations,
  coalesce(w.samples, CASE
    WHEN count(c.bytes) OVER (PARTITION BY t.job, c.bytes) >= 5
    THEN median(t.step_time_ms) OVER (PARTITION BY t.job, c.bytes)
  END) AS samples
FROM step_times t
LEFT JOIN (
  SELECT job, step, median(tokens_per_second * step_time_ms) AS tokens,
    median(tflops_per_gpu * step_time_ms) AS operations,
    coalesce(max(samples), median(samples_per_second * step_time_ms)) AS samples
  FROM steps
  WHERE step_time_ms > 0
  GROUP BY job, step
) w ON w.job IS NOT DISTINCT FROM t.job AND w.step = t.step
LEFT JOIN collective_steps c ON c.job IS NOT DISTINCT FROM t.job AND c.step = t.step
ORDER BY t.job, t.step
