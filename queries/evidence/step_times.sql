-- question: How long did each step of each job take?
SELECT job, step, ts, step_time_ms, source FROM step_times ORDER BY job, step
