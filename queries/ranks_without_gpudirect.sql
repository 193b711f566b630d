-- question: Which ranks send without GPUDirect RDMA?
-- columns:
--   job                         job
--   rank                        rank in the job
--   host                        host
--   nic                         NICs it sends through
--   gdr                         yes, no, or unknown where the log does not say
--   net_connections             its connections over the network
--   connections_without_gdr     those that bypass GPUDirect
--   ring_gdr                    what NCCL said of the whole ring
--   ranks_with_gdr              ranks of the job with GPUDirect
--   ranks                       ranks of the job
-- lines:
--   nccl_nics       NOT gdr
--   nccl_channels   transport = 'NET' AND NOT gdr
-- example: fabricobs query ranks_without_gpudirect
--
-- Ranks without come first, then unknown ones, then the others. NCCL says it with
-- NCCL_DEBUG=INFO alone; a job on one host sends nothing over the network and stays unknown. A
-- connection of a process of several ranks counts for the rank of the GPU that prints it.
WITH connections AS (
  SELECT job, job_rank, count(*) AS net_connections,
    count(*) FILTER (NOT gdr) AS connections_without_gdr,
    bool_and(gdr) AS gdr
  FROM channels_by_rank
  WHERE transport = 'NET' AND rank_source = 'communicator'
  GROUP BY job, job_rank
),
rings AS (
  -- A process may have several ranks, one for each GPU.
  SELECT job, host, pid, coalesce(nvml_device, cuda_device) AS gpu, bool_and(ring_gdr) AS ring_gdr
  FROM ranks
  WHERE nodes IS DISTINCT FROM 1
  GROUP BY ALL
),
nics AS (
  SELECT job, rank, string_agg(DISTINCT nic, ', ' ORDER BY nic) AS nic
  FROM rank_paths
  GROUP BY job, rank
),
told AS (
  SELECT r.job, r.rank, r.host, n.nic,
    CASE
      WHEN c.connections_without_gdr > 0 OR NOT g.ring_gdr THEN 'no'
      WHEN coalesce(c.gdr, g.ring_gdr) THEN 'yes'
      ELSE 'unknown'
    END AS gdr,
    coalesce(c.net_connections, 0) AS net_connections,
    coalesce(c.connections_without_gdr, 0) AS connections_without_gdr,
    g.ring_gdr
  FROM job_ranks r
  LEFT JOIN connections c ON c.job IS NOT DISTINCT FROM r.job AND c.job_rank = r.rank
  LEFT JOIN rings g ON g.job IS NOT DISTINCT FROM r.job AND g.host = r.host AND g.pid = r.pid
    AND g.gpu IS NOT DISTINCT FROM r.gpu
  LEFT JOIN nics n ON n.job IS NOT DISTINCT FROM r.job AND n.rank = r.rank
)
SELECT job, rank, host, nic, gdr, net_connections, connections_without_gdr, ring_gdr,
  count(*) FILTER (gdr = 'yes') OVER (PARTITION BY job) AS ranks_with_gdr,
  count(*) OVER (PARTITION BY job) AS ranks
FROM told
ORDER BY job, CASE gdr WHEN 'no' THEN 0 WHEN 'unknown' THEN 1 ELSE 2 END, rank;
