-- question: How much can the NICs below each leaf send, and how much its uplinks?
-- `ratio` is null unless the rate of every port is known.
WITH below AS (
  SELECT device, count(*) AS nics, CASE WHEN count(speed_gbps) = count(*) THEN sum(speed_gbps) END AS nic_gbps
  FROM ports_to_nics LEFT JOIN told_speeds USING (device, port)
  GROUP BY device
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
