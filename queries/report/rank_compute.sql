-- question: How much longer than its peers did each rank of the job $job compute and wait for its data, over the steps?
-- Without $job it is the job that has most of such steps.
-- Peers are the ranks of the same pipeline stage at the same step. Steps and ranks are joined to at
-- most $step_bins by $rank_bins cells: the median over the steps, then the slowest rank.
-- columns:
--   first_step  First step of the cell
--   last_step   Last step of the cell
--   first_rank  First rank of the cell
--   last_rank   Last rank of the cell
--   rank        Slowest rank of the cell
--   host        Its host
--   excess      Its own time, computation and waiting for data, over the median of its peers, less 1
WITH largest AS (
  SELECT job FROM rank_work
  WHERE own_ms IS NOT NULL
  GROUP BY job ORDER BY count(*) DESC, job LIMIT 1
),
by_rank AS (
  SELECT step, rank, coalesce(stage, 0) AS stage, max(host) AS host,
    max(own_ms) AS own_ms
  FROM rank_work
  WHERE own_ms IS NOT NULL
    AND job IS NOT DISTINCT FROM coalesce($job::VARCHAR, (SELECT job FROM largest))
  GROUP BY step, rank, stage
),
placed AS (
  SELECT step, rank, host,
    own_ms / nullif(median(own_ms) OVER (PARTITION BY step, stage), 0) - 1 AS excess,
    dense_rank() OVER (ORDER BY step) - 1 AS step_place,
    dense_rank() OVER (ORDER BY rank) - 1 AS rank_place
  FROM by_rank
),
binned AS (
  SELECT *,
    step_place * least($step_bins, max(step_place) OVER () + 1) // (max(step_place) OVER () + 1)
      AS step_bin,
    rank_place * least($rank_bins, max(rank_place) OVER () + 1) // (max(rank_place) OVER () + 1)
      AS rank_bin
  FROM placed
),
bounded AS (
  SELECT *,
    min(step) OVER (PARTITION BY step_bin) AS first_step,
    max(step) OVER (PARTITION BY step_bin) AS last_step,
    min(rank) OVER (PARTITION BY rank_bin) AS first_rank,
    max(rank) OVER (PARTITION BY rank_bin) AS last_rank
  FROM binned
),
by_cell AS (
  SELECT first_step, last_step, first_rank, last_rank, rank, max(host) AS host,
    median(excess) AS excess
  FROM bounded
  GROUP BY first_step, last_step, first_rank, last_rank, rank
)
SELECT first_step, last_step, first_rank, last_rank, arg_max(rank, excess) AS rank,
  arg_max(host, excess) AS host, max(excess) AS excess
FROM by_cell
GROUP BY first_step, last_step, first_rank, last_rank
ORDER BY first_step, first_rank
