-- question: Which GPU, NIC and leaf port does each rank use?
-- columns:
--   job           job
--   rank          rank in the job
--   host          host
--   gpu           physical GPU index
--   nic           NIC it sends through
--   net_device    the host's network device of that NIC
--   leaf          switch at the other end of the cable
--   leaf_port     its port
--   speed_gbps    rate of that port, else of the NIC, Gb/s
--   connections   connections NCCL opened to send through the NIC
-- lines:
--   links   true
-- example: fabricobs query topology
--
-- A rank that uses several NICs has a row for each. NIC needs NCCL_DEBUG=INFO, leaf needs LLDP or
-- fabric discovery, and the host's sysfs to match device names; a host map fills what no log tells.
-- Null is unknown.
WITH speeds AS (
  SELECT device, port, arg_max(speed_gbps, coalesce(ts, '1970-01-01'::TIMESTAMP)) AS speed_gbps
  FROM named_status
  WHERE speed_gbps IS NOT NULL
  GROUP BY device, port
),
nic_speeds AS (
  SELECT job, host, nic, max(speed_mbps) / 1000 AS speed_gbps
  FROM nccl_nics
  WHERE plugin IS DISTINCT FROM 'Socket'
  GROUP BY job, host, nic
)
SELECT DISTINCT p.job, p.rank, p.host, p.gpu, p.nic, p.net_device, p.leaf, p.leaf_port,
  coalesce(s.speed_gbps, n.speed_gbps) AS speed_gbps, p.connections
FROM rank_paths p
LEFT JOIN speeds s ON s.device = p.leaf AND s.port = p.leaf_port
LEFT JOIN nic_speeds n ON n.job IS NOT DISTINCT FROM p.job AND n.host = p.host AND n.nic = p.nic
ORDER BY p.job, p.rank, p.nic, p.leaf, p.leaf_port;
