-- question: How long did each rank of one side compute in each step, as a ratio to its peers?
-- Peers are the ranks of the same pipeline stage at the same step.
-- columns:
--   rank   Rank
--   host   Its host
--   step   Step number
--   ratio  Its computation over the median of its peers
WITH by_rank AS (
  SELECT step, rank, coalesce(stage, 0) AS stage, max(host_name(host)) AS host,
    max(compute_ms) AS compute_ms
  FROM steps
  WHERE job IS NOT DISTINCT FROM $job::VARCHAR AND rank IS NOT NULL AND compute_ms IS NOT NULL
    AND step BETWEEN $first_step::BIGINT AND $last_step::BIGINT
  GROUP BY step, rank, stage
),
hosts AS (
  SELECT rank, max(host) AS host FROM job_ranks
  WHERE job IS NOT DISTINCT FROM $job::VARCHAR AND rank IS NOT NULL
  GROUP BY rank
)
SELECT r.rank, coalesce(r.host, h.host) AS host, r.step,
  r.compute_ms / nullif(median(r.compute_ms) OVER (PARTITION BY r.step, r.stage), 0) AS ratio
FROM by_rank r LEFT JOIN hosts h ON h.rank = r.rank
ORDER BY r.rank, r.step
