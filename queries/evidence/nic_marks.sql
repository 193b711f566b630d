-- question: How often was each NIC told of congestion, and did it tell its senders?
SELECT n.host, n.nic, n.leaf AS switch, r.device, r.ts_before, r.ts, r.seconds,
  r.np_cnp_sent / r.seconds AS cnp_per_second,
  r.np_ecn_marked_packets / r.seconds AS marked_per_second
FROM port_rates r JOIN nic_ends n ON n.host = host_name(r.device) AND n.name = r.port
WHERE coalesce(r.np_cnp_sent, r.np_ecn_marked_packets) IS NOT NULL
ORDER BY n.host, n.nic, r.ts
