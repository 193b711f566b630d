-- question: Which network does each rank use, where RDMA devices are there to be used?
-- Columns as in gpudirect_facts. Sockets are wrong only where some host of the job shows an RDMA
-- device, or some rank of it uses one.
WITH chosen AS (
  SELECT w.job, w.rank, w.host, any_value(r.network) AS network
  FROM job_ranks w
  JOIN ranks r ON r.job IS NOT DISTINCT FROM w.job AND r.host = w.host AND r.pid = w.pid
  WHERE r.network IS NOT NULL
  GROUP BY w.job, w.rank, w.host
),
devices AS (
  SELECT job FROM nccl_nics WHERE plugin IS DISTINCT FROM 'Socket' AND nic IS NOT NULL
  UNION
  SELECT job FROM chosen WHERE network <> 'Socket'
  UNION
  SELECT j.job FROM job_ranks j JOIN named_status s ON host_name(s.device) = j.host
  WHERE regexp_matches(s.port, '^(mlx5|bnxt_re|irdma|efa)')
  UNION
  SELECT j.job FROM job_ranks j JOIN named_samples s ON host_name(s.device) = j.host
  WHERE regexp_matches(s.port, '^(mlx5|bnxt_re|irdma|efa)')
)
SELECT c.job, c.host, c.rank, 'network of NCCL' AS fact, NULL::VARCHAR AS part, c.network AS value,
  c.network = 'Socket' AS bad, true AS decides
FROM chosen c
SEMI JOIN devices d ON d.job IS NOT DISTINCT FROM c.job
WHERE (SELECT count(DISTINCT o.host) FROM chosen o WHERE o.job IS NOT DISTINCT FROM c.job) > 1
