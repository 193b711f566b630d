-- question: How busy was each NIC in the RDMA class, towards the host?
-- `speed_gbps` is that of its switch port; what the host or NCCL tells stands where that is not known.
WITH own AS (
  SELECT host, nic, max(speed_gbps) AS speed_gbps
  FROM (
    SELECT host_name(device) AS host, split_part(port, '/', 1) AS nic, speed_gbps FROM told_speeds
    UNION ALL
    SELECT host_name(host), nic, speed_mbps / 1000.0 FROM nccl_nics
  )
  WHERE speed_gbps > 0 GROUP BY host, nic
)
SELECT b.host, b.nic, b.device, b.ts_before, b.ts, b.seconds,
  8e-9 * b.received / b.seconds AS received_gbps, coalesce(s.speed_gbps, o.speed_gbps) AS speed_gbps
FROM nic_bytes b
LEFT JOIN told_speeds s ON s.device = b.switch AND s.port = b.port
LEFT JOIN own o ON o.host = b.host AND o.nic = b.nic
WHERE b.received IS NOT NULL
ORDER BY b.host, b.nic, b.ts
