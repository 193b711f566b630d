-- question: How many flows does NCCL send through each leaf to ranks below other leaves?
-- A connection is `NCCL_IB_QPS_PER_CONNECTION` queue pairs (1 where it is not set), each hashed
-- on its own.
WITH leaf_of AS (
  SELECT job, rank, host, min(leaf) AS leaf FROM rank_paths WHERE leaf IS NOT NULL
  GROUP BY job, rank, host
),
queue_pairs AS (
  SELECT job, host, max(try_cast(value AS BIGINT)) AS per_connection
  FROM nccl_env WHERE name = 'NCCL_IB_QPS_PER_CONNECTION' GROUP BY job, host
)
SELECT a.leaf AS device, sum(coalesce(q.per_connection, 1))::BIGINT AS flows
FROM nccl_channels c
JOIN leaf_of a ON a.job IS NOT DISTINCT FROM c.job AND a.rank = c.from_rank AND a.host = c.host
JOIN leaf_of b ON b.job IS NOT DISTINCT FROM c.job AND b.rank = c.to_rank
LEFT JOIN queue_pairs q ON q.job IS NOT DISTINCT FROM c.job AND q.host = c.host
WHERE c.transport = 'NET' AND c.side = 'send' AND a.leaf <> b.leaf
GROUP BY a.leaf
