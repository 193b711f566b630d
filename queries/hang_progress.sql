-- question: Where did a hang begin: which ranks are behind their process group?
-- columns:
--   job             job
--   process_group   PyTorch's process group
--   rank            rank, as the dump or the watchdog names it
--   last_enqueued   last collective it has launched
--   last_started    last one that began on its GPU
--   last_completed  last one that ended on it
--   peers           other ranks of the group that tell
--   peers_enqueued  last collective most of these have launched
--   behind          launched by the furthest rank of the group, not by this one
--   open            collectives it has launched that have not ended
--   waits_in        the oldest of them that the flight recorder still holds
-- lines:
--   nccl_events   last_enqueued IS NOT NULL OR kind = 'watchdog_timeout'
-- peers:
--   nccl_events   last_enqueued
-- example: fabricobs query hang_progress
--
-- In groups that send and receive `behind` is null: their ranks do not launch alike.
-- Ranks with `behind` above 0 are where to look: the others wait for them. Where all have launched
-- the same and only some have completed, look at the network and the GPUs instead. What NCCL's RAS
-- counts is in ras_mismatches.
WITH progress AS (
  SELECT job, process_group, rank, max(last_enqueued) AS last_enqueued,
    max(last_started) AS last_started, max(last_completed) AS last_completed
  FROM nccl_events
  WHERE last_enqueued IS NOT NULL AND rank IS NOT NULL AND kind NOT LIKE 'ras%'
  GROUP BY job, process_group, rank
),
recorded AS (
  SELECT job, split_part(comm_id, '[', 1) || coalesce(' ' || comm_name, '') AS process_group,
    global_rank AS rank, op, seq
  FROM collectives
  WHERE state <> 'completed'
),
-- Of as many ranks the further ones.
usual AS (
  SELECT job, process_group, last_enqueued AS peers_enqueued FROM progress
  GROUP BY job, process_group, last_enqueued
  QUALIFY row_number() OVER (PARTITION BY job, process_group ORDER BY count(*) DESC, last_enqueued DESC) = 1
),
compared AS (
  SELECT p.*, u.peers_enqueued, last_enqueued - last_completed AS open,
    count(*) OVER (PARTITION BY p.job, p.process_group) - 1 AS peers,
    CASE WHEN NOT EXISTS (
      SELECT 1 FROM recorded r WHERE r.job IS NOT DISTINCT FROM p.job
        AND r.process_group = p.process_group AND r.op IN ('Send', 'Recv')
    ) THEN max(last_enqueued) OVER (PARTITION BY p.job, p.process_group) - last_enqueued END AS behind
  FROM progress p JOIN usual u ON u.job IS NOT DISTINCT FROM p.job AND u.process_group = p.process_group
),
waiting AS (
  SELECT job, process_group, rank, arg_min(op, seq) AS op
  FROM recorded
  GROUP BY job, process_group, rank
)
SELECT c.job, c.process_group, c.rank, c.last_enqueued, c.last_started, c.last_completed, c.peers,
  c.peers_enqueued, c.behind, c.open, w.op AS waits_in
FROM compared c
LEFT JOIN waiting w ON w.job IS NOT DISTINCT FROM c.job AND w.process_group = c.process_group
  AND w.rank = c.rank
WHERE c.behind > 0 OR c.open > 0
ORDER BY c.job, max(c.behind) OVER (PARTITION BY c.job, c.process_group) DESC NULLS LAST,
  c.process_group, c.behind DESC, c.rank;
