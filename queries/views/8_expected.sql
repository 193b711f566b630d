-- The NICs each job has: link rate of one, and how many of them a host uses, both the median over hosts.
-- NCCL's own list comes first, then what the hosts themselves say of their ports.
CREATE OR REPLACE VIEW job_networks AS
WITH listed AS (
  SELECT job, median(speed_gbps) AS speed_gbps
  FROM (
    SELECT job, host, nic, max(speed_mbps) / 1000 AS speed_gbps
    FROM nccl_nics
    WHERE plugin IS DISTINCT FROM 'Socket' AND speed_mbps > 0
    GROUP BY job, host, nic
  )
  GROUP BY job
),
host_ports AS (
  SELECT r.job, s.device, s.port, max(s.speed_gbps) AS speed_gbps
  FROM named_status s
  JOIN (SELECT DISTINCT job, host FROM job_ranks) r ON r.host = s.device
  WHERE s.speed_gbps > 0
  GROUP BY r.job, s.device, s.port
  QUALIFY max(s.speed_gbps) = max(max(s.speed_gbps)) OVER (PARTITION BY r.job, s.device)
),
host_nics AS (
  SELECT job, median(speed_gbps) AS speed_gbps, median(nics) AS nics
  FROM (
    SELECT job, device, max(speed_gbps) AS speed_gbps, count(*) AS nics
    FROM host_ports
    GROUP BY job, device
  )
  GROUP BY job
),
used AS (
  SELECT job, median(nics) AS nics
  FROM (SELECT job, host, count(DISTINCT nic) AS nics FROM rank_paths GROUP BY job, host)
  WHERE nics > 0
  GROUP BY job
)
SELECT j.job, coalesce(l.speed_gbps, h.speed_gbps) / 8 AS link_gbytes_per_s, coalesce(u.nics, h.nics) AS nics
FROM (SELECT job FROM listed UNION SELECT job FROM host_nics UNION SELECT job FROM used) j
LEFT JOIN listed l ON l.job IS NOT DISTINCT FROM j.job
LEFT JOIN host_nics h ON h.job IS NOT DISTINCT FROM j.job
LEFT JOIN used u ON u.job IS NOT DISTINCT FROM j.job;

-- Collectives of a job by kind and size, with the NICs they can use. `bytes` is the whole message. `nics` is
-- that of a host in the part its ranks have of all ranks there: the groups of a job send at the same time.
CREATE OR REPLACE VIEW collective_classes AS
WITH sizes AS (
  SELECT job, max(ranks) AS host_ranks
  FROM (SELECT job, host, count(DISTINCT rank) AS ranks FROM job_ranks WHERE host IS NOT NULL GROUP BY job, host)
  GROUP BY job
)
SELECT c.job, c.op, c.nranks, c.nodes, (2 ^ floor(log2(c.bytes)))::BIGINT AS size_class,
  median(c.bytes * CASE WHEN c.op = 'AllReduce' THEN 1 ELSE c.nranks END) AS bytes,
  count(*) AS calls,
  quantile_cont(c.busbw_gbytes_per_s, 0.5) AS busbw_p50_gbytes_per_s,
  quantile_cont(c.busbw_gbytes_per_s, 0.95) AS busbw_p95_gbytes_per_s,
  quantile_cont(c.pure_us, 0.5) AS pure_p50_us,
  CASE WHEN c.nodes > 1 THEN any_value(n.link_gbytes_per_s) END AS link_gbytes_per_s,
  CASE WHEN c.nodes > 1 AND any_value(n.nics) IS NOT NULL THEN least(ceil(c.nranks / c.nodes),
    any_value(n.nics) * least(1.0, c.nranks / c.nodes / any_value(s.host_ranks))) END AS nics,
  NULL::VARCHAR AS gpu
FROM collective_calls c
LEFT JOIN job_networks n ON n.job IS NOT DISTINCT FROM c.job
LEFT JOIN sizes s ON s.job IS NOT DISTINCT FROM c.job
WHERE c.bytes > 0 AND c.nranks > 1
GROUP BY c.job, c.op, c.nranks, c.nodes, size_class;
