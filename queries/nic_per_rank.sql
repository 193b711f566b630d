-- question: Does each rank send through the NIC its peers on other hosts use?
-- columns:
--   job                job
--   rank               rank in the job
--   host               host
--   gpu                physical GPU index
--   nic                NICs it sends through
--   usual_nic          what most hosts use for that GPU index
--   hosts_with_usual   hosts that do
--   hosts              hosts whose NIC for that GPU index is known
--   differs            whether this rank does not; null where it or its peers are unknown
-- lines:
--   nccl_channels   transport = 'NET'
-- example: fabricobs query nic_per_rank
--
-- A rank that differs may send through a NIC on the other side of the PCIe tree. Where hosts are
-- evenly split, or built differently, `usual_nic` is the first by name: look at `hosts_with_usual`.
WITH own AS (
  SELECT job, rank, host, gpu, string_agg(DISTINCT nic, ', ' ORDER BY nic) AS nic
  FROM rank_paths
  GROUP BY job, rank, host, gpu
),
usual AS (
  SELECT job, gpu, nic AS usual_nic, count(DISTINCT host) AS hosts_with_usual
  FROM own
  WHERE gpu IS NOT NULL AND nic IS NOT NULL
  GROUP BY job, gpu, nic
  QUALIFY row_number() OVER (PARTITION BY job, gpu ORDER BY count(DISTINCT host) DESC, nic) = 1
),
hosts_of AS (
  SELECT job, gpu, count(DISTINCT host) AS hosts
  FROM own
  WHERE gpu IS NOT NULL AND nic IS NOT NULL
  GROUP BY job, gpu
)
SELECT o.job, o.rank, o.host, o.gpu, o.nic, u.usual_nic, u.hosts_with_usual,
  coalesce(h.hosts, 0) AS hosts,
  CASE WHEN h.hosts > 1 THEN o.nic <> u.usual_nic END AS differs
FROM own o
LEFT JOIN usual u ON u.job IS NOT DISTINCT FROM o.job AND u.gpu = o.gpu
LEFT JOIN hosts_of h ON h.job IS NOT DISTINCT FROM o.job AND h.gpu = o.gpu
ORDER BY o.job, differs DESC NULLS LAST, o.rank;
