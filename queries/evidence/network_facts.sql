-- question: Which network does each rank use, where RDMA devices are there to be used?
-- Columns as in gpudirect_facts. Sockets are wrong only where some host of the job shows an RDMA
-- device, or some rank of it uses one.
WITH chosen AS (
  SELECT p.job, w.rank, p.host, any_value(p.network) AS network
  FROM nccl_processes p
  LEFT JOIN job_ranks w ON w.job IS NOT DISTINCT FROM p.job AND w.host = p.host AND w.pid = p.pid
  WHERE p.network IS NOT NULL AND p.host IS NOT NULL
  GROUP BY p.job, w.rank, p.host, p.pid
),
devices AS (
  SELECT job FROM nccl_nics WHERE plugin IS DISTINCT FROM 'Socket' AND nic IS NOT NULL
  UNION
  SELECT job FROM chosen WHERE network <> 'Socket'
  UNION
  SELECT j.job FROM job_ranks j JOIN named_status s ON host_name(s.device) = j.host
  WHERE is_rdma_device(s.port)
  UNION
  SELECT j.job FROM job_ranks j JOIN named_samples s ON host_name(s.device) = j.host
  WHERE is_rdma_device(s.port)
)
SELECT c.job, c.host, c.rank, 'network of NCCL' AS fact, NULL::VARCHAR AS part, c.network AS value,
  c.network = 'Socket' AS bad, true AS decides
FROM chosen c
SEMI JOIN devices d ON d.job IS NOT DISTINCT FROM c.job
WHERE (SELECT count(DISTINCT o.host) FROM chosen o WHERE o.job IS NOT DISTINCT FROM c.job) > 1
UNION ALL
-- What NCCL says where it finds none tells why it took sockets.
SELECT c.job, c.host, NULL, 'RDMA devices for NCCL', NULL,
  coalesce(d.value, CASE WHEN bool_or(c.network <> 'Socket') THEN 'found' ELSE 'not told' END), NULL, false
FROM chosen c LEFT JOIN (
  SELECT host_name(host) AS host, any_value(value) AS value FROM hosts WHERE fact = 'rdma_device' GROUP BY host_name(host)
) d ON d.host = c.host
WHERE EXISTS (SELECT 1 FROM hosts WHERE fact = 'rdma_device')
GROUP BY c.job, c.host, d.value
