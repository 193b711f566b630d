-- question: Through which NIC does the GPU of each rank send, and how far is it on PCIe?
-- Columns as in gpudirect_facts; a part is a GPU's index. The NIC that a GPU receives through, where it sends
-- through none of its own, may be another than the one it would send through: it is compared with its like.
-- Logs without their beginning name neither ranks nor NICs, but each connection tells the GPU of its process and
-- the number of the NIC: of a job without names the numbers are compared. Processes that all call their GPU 0
-- (CUDA_VISIBLE_DEVICES) cannot be.
WITH used AS (
  SELECT job, rank, host, gpu, bool_or(sends) AS sends, string_agg(DISTINCT nic, ', ' ORDER BY nic) AS nics,
    CASE WHEN count(DISTINCT nic) = 1 THEN any_value(nic) END AS nic
  FROM rank_paths
  WHERE connections > 0 AND gpu IS NOT NULL AND nic IS NOT NULL
  GROUP BY job, rank, host, gpu
),
reached AS (
  FROM channels_by_rank
  WHERE transport = 'NET' AND network <> 'Socket' AND proxy_rank IS NULL AND nic_index IS NOT NULL
    AND cuda_device IS NOT NULL AND host IS NOT NULL
),
connections AS (
  SELECT c.job, c.job_rank AS rank, host_name(c.host) AS host, c.cuda_device AS gpu,
    c.network || ' device ' || c.nic_index AS nic, c.side = 'send' AS sends,
    count(DISTINCT c.cuda_device) OVER (PARTITION BY c.job, c.host) AS gpus
  FROM reached c
  ANTI JOIN (SELECT DISTINCT job FROM used) u ON u.job IS NOT DISTINCT FROM c.job
),
numbered AS (
  SELECT job, any_value(rank) AS rank, host, gpu, any_value(sends) AS sends,
    string_agg(DISTINCT nic, ', ' ORDER BY nic) AS nics
  FROM (
    FROM connections WHERE gpus > 1
    QUALIFY sends = max(sends) OVER (PARTITION BY job, host, gpu)
  )
  GROUP BY job, host, gpu
),
-- Of two hosts none is usual: where the GPUs of one use NICs in the order of their numbers, the other is odd. A ring
-- that enters by one GPU may leave by the next: the first NIC of both is the same.
ordered AS (
  SELECT *, count(*) OVER (PARTITION BY job) AS hosts, count(*) FILTER (in_order) OVER (PARTITION BY job) AS hosts_in_order,
    count(DISTINCT of_gpus) OVER (PARTITION BY job) AS ways
  FROM (
    SELECT job, host, list(number ORDER BY gpu) AS of_gpus, of_gpus = list_sort(of_gpus) AND len(of_gpus) > 1 AS in_order
    FROM (
      SELECT job, host_name(host) AS host, cuda_device AS gpu, min(nic_index) AS number
      FROM reached
      GROUP BY ALL
    )
    GROUP BY job, host
  )
),
odd AS (
  SELECT job, host FROM ordered WHERE hosts = 2 AND ways = 2 AND hosts_in_order = 1 AND NOT in_order
),
legend AS (
  SELECT DISTINCT host_name(host) AS host, part, value AS device FROM hosts WHERE fact = 'device'
),
distances AS (
  SELECT host_name(h.host) AS host, regexp_extract(h.part, '^GPU(\d+)$', 1)::BIGINT AS gpu,
    coalesce(l.device, h.fact) AS nic, any_value(h.value) AS path
  FROM hosts h
  LEFT JOIN legend l ON l.host = host_name(h.host) AND l.part = h.fact
  WHERE regexp_matches(h.part, '^GPU\d+$') AND h.value IN ('PIX', 'PXB', 'PHB', 'NODE', 'SYS')
  GROUP BY ALL
)
SELECT f.job, f.host, f.rank, CASE WHEN sends THEN 'NIC of GPU' ELSE 'receiving NIC of GPU' END AS fact,
  gpu::VARCHAR AS part, nics AS value, CASE WHEN o.host IS NOT NULL THEN true END AS bad, true AS decides
FROM (SELECT job, rank, host, gpu, sends, nics FROM used UNION ALL FROM numbered) f
LEFT JOIN odd o ON o.host = f.host AND o.job IS NOT DISTINCT FROM f.job
UNION ALL
SELECT u.job, u.host, u.rank, 'PCIe path to the NIC of GPU', u.gpu::VARCHAR, d.path, NULL, false
FROM used u JOIN distances d ON d.host = u.host AND d.gpu = u.gpu AND d.nic = u.nic
