-- question: How busy was each NIC in the RDMA class, towards the host?
WITH speeds AS (
  SELECT device, port, max(speed_gbps) AS speed_gbps FROM named_status GROUP BY device, port
)
SELECT b.host, b.nic, b.device, b.ts_before, b.ts, b.seconds,
  8e-9 * b.received / b.seconds AS received_gbps, s.speed_gbps
FROM nic_bytes b LEFT JOIN speeds s ON s.device = b.switch AND s.port = b.port
WHERE b.received IS NOT NULL
ORDER BY b.host, b.nic, b.ts
