-- question: How many flows does NCCL send through each leaf to NICs below other leaves?
-- A connection is `NCCL_IB_QPS_PER_CONNECTION` queue pairs (1 where it is not set), each hashed
-- on its own. It goes from the leaf of the NIC that sends to that of the NIC that receives: with PXN
-- and rails that are others than those of its ranks, which are taken where a log tells one end only.
-- Which kind of communicator carries most is not known: the flows are of the kind that has most, for those of one
-- that is hardly used even out nothing. 0 is said where all ranks are told, and both NICs of every connection, each
-- below one leaf.
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
-- A line tells ranks within its communicator: the one whose lines stand last before it in the log of the process.
named AS (
  SELECT file_id, pid, comm, max(comm_id) AS comm_id, max(nranks) AS nranks FROM nccl_ranks
  WHERE comm IS NOT NULL GROUP BY file_id, pid, comm HAVING max(comm_id) IS NOT NULL
),
begun AS (
  SELECT r.file_id, r.pid, r.line, n.comm_id, n.nranks
  FROM nccl_ranks r JOIN named n USING (file_id, pid, comm) WHERE r.line IS NOT NULL
),
connections AS (
  SELECT c.job, c.host, c.job_rank, c.channel, c.connection, c.from_rank, c.to_rank, c.side, c.nic_index,
    b.comm_id, b.nranks
  FROM channels_by_rank c
  ASOF LEFT JOIN begun b ON b.file_id = c.file_id AND b.pid = c.pid AND b.line <= c.line
  WHERE c.transport = 'NET'
),
members AS (
  SELECT job, comm_id, CASE WHEN side = 'send' THEN from_rank ELSE to_rank END AS rank, min(job_rank) AS job_rank
  FROM connections WHERE comm_id IS NOT NULL GROUP BY ALL HAVING count(DISTINCT job_rank) = 1
),
received AS (
  SELECT c.job, c.comm_id, c.channel, c.connection, c.from_rank, c.to_rank, min(n.leaf) AS leaf
  FROM connections c
  JOIN leaf_of_nic n ON n.job IS NOT DISTINCT FROM c.job AND n.host = c.host AND n.nic_index = c.nic_index
  WHERE c.side <> 'send'
  GROUP BY ALL
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
  SELECT coalesce(n.leaf, a.leaf) AS device, coalesce(r.leaf, b.leaf) AS far, c.nranks,
    n.leaf IS NOT NULL AND r.leaf IS NOT NULL AS told, coalesce(q.per_connection, 1) AS flows
  FROM connections c
  LEFT JOIN members m ON m.job IS NOT DISTINCT FROM c.job AND m.comm_id = c.comm_id AND m.rank = c.to_rank
  LEFT JOIN leaf_of_nic n ON n.job IS NOT DISTINCT FROM c.job AND n.host = c.host AND n.nic_index = c.nic_index
  LEFT JOIN received r ON r.job IS NOT DISTINCT FROM c.job AND r.comm_id IS NOT DISTINCT FROM c.comm_id
    AND r.channel = c.channel AND r.connection IS NOT DISTINCT FROM c.connection
    AND r.from_rank = c.from_rank AND r.to_rank = c.to_rank
  LEFT JOIN leaf_of a ON a.job IS NOT DISTINCT FROM c.job AND a.host = c.host
    AND a.rank = coalesce(c.job_rank, c.from_rank)
  LEFT JOIN leaf_of b ON b.job IS NOT DISTINCT FROM c.job
    AND b.rank = CASE WHEN c.comm_id IS NULL THEN c.to_rank ELSE m.job_rank END
  LEFT JOIN queue_pairs q ON q.job IS NOT DISTINCT FROM c.job AND q.host = c.host
  WHERE c.side = 'send'
),
-- Communicators of one size are of one kind, and carry alike.
kinds AS (
  SELECT device, nranks, sum(flows) FILTER (device <> far) AS flows, bool_and(told) AS told
  FROM sent WHERE device IS NOT NULL GROUP BY device, nranks
)
SELECT device, coalesce(max(flows), 0)::BIGINT AS flows
FROM kinds
GROUP BY device
HAVING max(flows) IS NOT NULL OR (bool_and(told) AND (SELECT jobs FROM untold) = 0)
