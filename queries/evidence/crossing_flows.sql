-- question: How many flows does NCCL send through each leaf to NICs below other leaves?
-- A connection is `NCCL_IB_QPS_PER_CONNECTION` queue pairs (1 where it is not set), each hashed
-- on its own. It goes from the leaf of the NIC that sends to that of the NIC that receives: with PXN
-- and rails that are others than those of its ranks, which are taken where a log tells one end only.
-- 0 is said where all ranks are told, and both NICs of every connection, each below one leaf.
WITH leaf_of AS (
  SELECT job, rank, host, min(leaf) AS leaf FROM rank_paths WHERE leaf IS NOT NULL
  GROUP BY job, rank, host
),
leaf_of_nic AS (
  SELECT n.job, n.host, n.nic_index, min(p.leaf) AS leaf
  FROM (SELECT DISTINCT job, host, nic_index, nic FROM nccl_nics) n
  JOIN rank_paths p ON p.job IS NOT DISTINCT FROM n.job AND p.host = n.host AND p.nic = n.nic
  WHERE p.leaf IS NOT NULL
  GROUP BY n.job, n.host, n.nic_index
  HAVING count(DISTINCT p.leaf) = 1
),
received AS (
  SELECT c.job, c.channel, c.connection, c.from_rank, c.to_rank, min(n.leaf) AS leaf
  FROM nccl_channels c
  JOIN leaf_of_nic n ON n.job IS NOT DISTINCT FROM c.job AND n.host = c.host AND n.nic_index = c.nic_index
  WHERE c.transport = 'NET' AND c.side <> 'send'
  GROUP BY c.job, c.channel, c.connection, c.from_rank, c.to_rank
  HAVING count(DISTINCT n.leaf) = 1
),
queue_pairs AS (
  SELECT job, host, max(try_cast(value AS BIGINT)) AS per_connection
  FROM nccl_env WHERE name = 'NCCL_IB_QPS_PER_CONNECTION' GROUP BY job, host
),
untold AS (
  SELECT count(*) AS jobs
  FROM (SELECT job, count(DISTINCT rank) AS ranks FROM job_ranks GROUP BY job) j
  JOIN (SELECT job, max(nranks) AS nranks FROM ranks GROUP BY job) r ON r.job IS NOT DISTINCT FROM j.job
  WHERE r.nranks > j.ranks
),
sent AS (
  SELECT coalesce(n.leaf, a.leaf) AS device, coalesce(r.leaf, b.leaf) AS far,
    n.leaf IS NOT NULL AND r.leaf IS NOT NULL AS told, coalesce(q.per_connection, 1) AS flows
  FROM nccl_channels c
  LEFT JOIN leaf_of_nic n ON n.job IS NOT DISTINCT FROM c.job AND n.host = c.host AND n.nic_index = c.nic_index
  LEFT JOIN received r ON r.job IS NOT DISTINCT FROM c.job AND r.channel = c.channel
    AND r.connection IS NOT DISTINCT FROM c.connection AND r.from_rank = c.from_rank AND r.to_rank = c.to_rank
  LEFT JOIN leaf_of a ON a.job IS NOT DISTINCT FROM c.job AND a.rank = c.from_rank AND a.host = c.host
  LEFT JOIN leaf_of b ON b.job IS NOT DISTINCT FROM c.job AND b.rank = c.to_rank
  LEFT JOIN queue_pairs q ON q.job IS NOT DISTINCT FROM c.job AND q.host = c.host
  WHERE c.transport = 'NET' AND c.side = 'send'
)
SELECT device, coalesce(sum(flows) FILTER (device <> far), 0)::BIGINT AS flows
FROM sent
WHERE device IS NOT NULL
GROUP BY device
HAVING count(*) FILTER (device <> far) > 0 OR (bool_and(told) AND (SELECT jobs FROM untold) = 0)
