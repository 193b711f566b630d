-- question: Of which NICs is it known whether they pause their switch port, by either end?
-- A host whose cables name net devices has those, or its RDMA devices, whichever more are counted of.
-- Where no NIC is known: of which ports of switches.
WITH counted AS (
  SELECT DISTINCT device, port FROM pause_intervals
),
nics AS (
  SELECT n.host, n.nic, n.named
  FROM nic_ends n JOIN counted p ON host_name(p.device) = n.host AND p.port = n.name
  UNION
  SELECT n.host, n.nic, n.named FROM nic_ports n JOIN counted p ON p.device = n.leaf AND p.port = n.leaf_port
),
chosen AS (
  SELECT host, named FROM nics GROUP BY host, named
  QUALIFY row_number() OVER (PARTITION BY host ORDER BY count(*) DESC, named DESC) = 1
)
SELECT host, nic, NULL AS switch, NULL AS port FROM nics SEMI JOIN chosen USING (host, named)
UNION ALL
SELECT NULL, NULL, device, port FROM counted
WHERE NOT EXISTS (FROM nic_ends) AND NOT EXISTS (FROM nic_ports)
