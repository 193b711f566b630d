-- Ranks of communicators with the channels that NCCL gave them: it prints these between its first and last line about one.
CREATE OR REPLACE VIEW communicator_ranks AS
WITH told AS (
  SELECT file_id, host, pid, coalesce(tid, -1) AS tid, coalesce(cuda_device, -1) AS device, line,
    coll_channels, p2p_channels, nvls_channels, collnet_channels
  FROM nccl_ranks WHERE coll_channels IS NOT NULL AND host IS NOT NULL AND pid IS NOT NULL
),
ended AS (
  SELECT job, file_id, host, pid, coalesce(tid, -1) AS tid, coalesce(cuda_device, -1) AS device, line, comm, comm_id, rank, nranks
  FROM nccl_ranks WHERE init_state = 'complete' AND comm IS NOT NULL
),
placed AS (
  SELECT job, host, pid, comm, rank, coll_channels, p2p_channels, nvls_channels, collnet_channels FROM nccl_ranks
  WHERE comm IS NOT NULL AND coll_channels IS NOT NULL
  UNION ALL
  SELECT e.job, e.host, e.pid, e.comm, e.rank, t.coll_channels, t.p2p_channels, t.nvls_channels, t.collnet_channels
  FROM told t ASOF JOIN ended e
    ON e.file_id = t.file_id AND e.host = t.host AND e.pid = t.pid AND e.tid = t.tid AND e.device = t.device AND e.line >= t.line
)
SELECT r.job, coalesce(r.comm_id, r.comm) AS communicator, r.host, r.pid, r.rank, r.nranks, r.nodes, r.local_ranks, r.network, r.version,
  max(p.coll_channels) AS coll_channels, max(p.p2p_channels) AS p2p_channels,
  max(p.nvls_channels) AS nvls_channels, max(p.collnet_channels) AS collnet_channels
FROM ranks r
LEFT JOIN placed p ON p.job IS NOT DISTINCT FROM r.job AND p.host = r.host AND p.pid = r.pid AND p.comm = r.comm AND p.rank = r.rank
GROUP BY r.job, coalesce(r.comm_id, r.comm), r.host, r.pid, r.rank, r.nranks, r.nodes, r.local_ranks, r.network, r.version;

-- What each algorithm of NCCL needs: its first release 2.x, ranks a host and hosts of a communicator (null: any number),
-- GPUs (a regular expression), and a variable that must be set. `manual` and `code` as for `nccl_variable_checks`.
CREATE OR REPLACE TABLE nccl_algorithm_needs AS
SELECT * FROM (VALUES
  ('Ring', 0, NULL, NULL, NULL, NULL, NULL, NULL, 'manual, NCCL_ALGO'),
  ('Tree', 4, NULL, NULL, NULL, NULL, NULL, NULL, 'manual, NCCL_ALGO; AllReduce alone: code, graph/tuning'),
  ('CollNetDirect', 14, NULL, NULL, 2, NULL, NULL, 'NCCL_COLLNET_ENABLE', 'manual, NCCL_ALGO, NCCL_COLLNET_ENABLE and NCCL_COLLNET_NODE_THRESHOLD; NVSwitch: code, graph/tuning'),
  ('CollNetChain', 14, NULL, NULL, 2, NULL, NULL, 'NCCL_COLLNET_ENABLE', 'manual, NCCL_ALGO, NCCL_COLLNET_ENABLE and NCCL_COLLNET_NODE_THRESHOLD'),
  ('NVLS', 17, 2, NULL, NULL, 1, '(H100 80GB HBM3|H200|H800|H20(-3e)?|G?[BH]?B[23]00)$', NULL, 'manual, NCCL_NVLS_ENABLE: third generation of NVSwitch; over several hosts it needs CollNet: code, graph/tuning'),
  ('NVLSTree', 18, 2, NULL, 2, NULL, '(H100 80GB HBM3|H200|H800|H20(-3e)?|G?[BH]?B[23]00)$', NULL, 'manual, NCCL_NVLS_ENABLE; more than one host: code, graph/tuning'),
  ('PAT', 23, NULL, 1, 2, NULL, NULL, NULL, 'manual, NCCL_ALGO; one GPU a host, AllGather and ReduceScatter: code, graph/tuning'),
  ('Symmetric', 27, 2, NULL, NULL, 1, NULL, NULL, 'manual, NCCL_WIN_ENABLE: buffers registered as windows; one host, unless NVLink joins several: code, init')
) AS t(algorithm, since, fewest_local, most_local, fewest_nodes, most_nodes, gpu, variable, source);
