-- question: How often did its leaf pause each NIC, as the NIC tells it or the leaf's port (`seen_at`)?
SELECT n.leaf, n.host, n.nic, n.leaf_port, 'nic' AS seen_at, p.device, p.ts_before, p.ts, p.seconds,
  p.rx_frames_per_second AS frames_per_second, p.rx_share AS share
FROM pause_intervals p JOIN nic_ends n ON n.host = host_name(p.device) AND n.name = p.port
WHERE n.leaf IS NOT NULL
UNION ALL
SELECT n.leaf, n.host, n.nic, n.leaf_port, 'switch', p.device, p.ts_before, p.ts, p.seconds,
  p.tx_frames_per_second, p.tx_share
FROM pause_intervals p JOIN nic_ports n ON n.leaf = p.device AND n.leaf_port = p.port
ORDER BY leaf, host, nic, seen_at, ts
