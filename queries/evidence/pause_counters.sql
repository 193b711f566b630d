-- question: Of which NICs is it known whether they pause their switch port, by either end?
-- Where no NIC is known: of which ports of switches.
SELECT DISTINCT n.host, n.nic, NULL AS switch, NULL AS port
FROM nic_ends n
JOIN (SELECT DISTINCT device, port FROM pause_intervals) p
  ON (host_name(p.device) = n.host AND p.port = n.name)
  OR (p.device = n.leaf AND p.port = n.leaf_port)
UNION ALL
SELECT DISTINCT NULL, NULL, device, port FROM pause_intervals
WHERE NOT EXISTS (SELECT 1 FROM nic_ends)
