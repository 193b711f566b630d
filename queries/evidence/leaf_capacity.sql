-- question: How much can the NICs below each leaf send, and how much its uplinks?
-- `ratio` is null unless the rate of every port is known.
WITH speeds AS (
  SELECT device, port, max(speed_gbps) AS speed_gbps FROM named_status GROUP BY device, port
),
below AS (
  SELECT c.owner AS device, count(*) AS nics,
    CASE WHEN count(s.speed_gbps) = count(*) THEN sum(s.speed_gbps) END AS nic_gbps
  FROM cable_ends c LEFT JOIN speeds s ON s.device = c.owner AND s.port = c.part
  WHERE c.far_is_nic AND NOT c.is_nic
  GROUP BY c.owner
),
above AS (
  SELECT device, uplink_group, any_value(members) AS uplinks,
    CASE WHEN count(speed_gbps) = count(*) THEN sum(speed_gbps) END AS uplink_gbps
  FROM parallel_ports WHERE NOT inferred GROUP BY device, uplink_group
)
SELECT a.device, a.uplink_group, b.nics, b.nic_gbps, a.uplinks, a.uplink_gbps,
  b.nic_gbps / a.uplink_gbps AS ratio
FROM above a JOIN below b USING (device)
ORDER BY a.device
