-- question: How long was each step, its transfer, its slowest computation and its loading of data?
-- The transfer is the exposed communication of the rank that waits least: what others communicate
-- longer, they wait. A step seen on few of a job's ranks tells of neither. Where `by_collectives`, the
-- transfer is that of the collectives, of which computation may hide a part or all.
SELECT s.job, s.step, s.ts, s.step_time_ms, r.ranks,
  coalesce(r.transfer_ms, c.transfer_ms) AS transfer_ms, r.slowest_compute_ms,
  r.compute_ms, r.data_ms, r.transfer_ms IS NULL AND c.transfer_ms IS NOT NULL AS by_collectives
FROM step_times s
LEFT JOIN (
  SELECT job, step, count(*) AS ranks, min(comm_ms) AS transfer_ms,
    max(compute_ms) AS slowest_compute_ms, median(compute_ms) AS compute_ms,
    median(data_ms) AS data_ms
  FROM steps
  WHERE rank IS NOT NULL
  GROUP BY job, step
) r ON r.job IS NOT DISTINCT FROM s.job AND r.step = s.step
LEFT JOIN collective_steps c ON c.job IS NOT DISTINCT FROM s.job AND c.step = s.step
ORDER BY s.job, s.step
