-- question: What share of the NICs' link rate do the collectives reach?
-- columns:
--   job                     job
--   op                      AllReduce, AllGather or ReduceScatter
--   nranks                  ranks of the communicator
--   nodes                   hosts of the communicator; 1: it stays on NVLink or PCIe
--   size_class              largest power of two not above the message size, bytes
--   calls                   calls
--   busbw_p50_gbytes_per_s  median bus bandwidth, GB/s
--   busbw_p95_gbytes_per_s  95th percentile, GB/s
--   link_rate_gbytes_per_s  link rate of one NIC, GB/s
--   nics                    NICs each host of the communicator can send through
--   link_share              busbw_p50_gbytes_per_s over link_rate_gbytes_per_s times nics
-- example: fabricobs query bus_bandwidth
--
-- Bandwidth of the rank that arrived last: the others' time includes waiting for it. Large messages
-- over several hosts reach 0.7 to 0.85 of the link rate on a healthy fabric; small ones are bound by
-- latency and do not. `nics` counts the NICs in use, at most one a rank. Null is unknown.
WITH speeds AS (
  SELECT job, median(speed_gbps) AS speed_gbps
  FROM (
    SELECT job, host, nic, max(speed_mbps) / 1000 AS speed_gbps
    FROM nccl_nics
    WHERE plugin IS DISTINCT FROM 'Socket' AND speed_mbps > 0
    GROUP BY job, host, nic
  )
  GROUP BY job
),
-- What the hosts themselves say of their NICs, for logs without NCCL's list.
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
used_nics AS (
  SELECT job, median(nics) AS nics
  FROM (SELECT job, host, count(DISTINCT nic) AS nics FROM rank_paths GROUP BY job, host)
  WHERE nics > 0
  GROUP BY job
),
classes AS (
  SELECT job, op, nranks, nodes, (2 ^ floor(log2(bytes)))::BIGINT AS size_class,
    count(*) AS calls,
    quantile_cont(busbw_gbytes_per_s, 0.5) AS busbw_p50_gbytes_per_s,
    quantile_cont(busbw_gbytes_per_s, 0.95) AS busbw_p95_gbytes_per_s
  FROM collective_calls
  WHERE bytes > 0 AND nranks > 1
  GROUP BY ALL
),
limits AS (
  SELECT c.*,
    CASE WHEN c.nodes > 1 THEN coalesce(s.speed_gbps, h.speed_gbps) / 8 END AS link_rate_gbytes_per_s,
    CASE WHEN c.nodes > 1 AND coalesce(u.nics, h.nics) IS NOT NULL
      THEN least(coalesce(u.nics, h.nics), ceil(c.nranks / c.nodes))::BIGINT END AS nics
  FROM classes c
  LEFT JOIN speeds s ON s.job IS NOT DISTINCT FROM c.job
  LEFT JOIN host_nics h ON h.job IS NOT DISTINCT FROM c.job
  LEFT JOIN used_nics u ON u.job IS NOT DISTINCT FROM c.job
)
SELECT job, op, nranks, nodes, size_class, calls, busbw_p50_gbytes_per_s, busbw_p95_gbytes_per_s,
  link_rate_gbytes_per_s, nics, busbw_p50_gbytes_per_s / (link_rate_gbytes_per_s * nics) AS link_share
FROM limits
ORDER BY job, op, nranks DESC, nodes, size_class;
