-- question: Of which NICs is it known whether they pause their switch port, by either end?
SELECT DISTINCT n.host, n.nic
FROM nic_ends n
JOIN (SELECT DISTINCT device, port FROM pause_intervals) p
  ON (host_name(p.device) = n.host AND p.port = n.name)
  OR (p.device = n.leaf AND p.port = n.leaf_port)
