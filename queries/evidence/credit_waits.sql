-- question: For which share of the time did each InfiniBand port wait for credits?
-- `share` is what two intervals in a row reach at most. A tick of PortXmitWait stands for `$tick_bytes` that were not
-- sent; for `$slow_tick_bytes` on links of up to `$slow_gbps`, and where no file tells the rate of the link.
-- `host` and `nic` are the NIC at either end of the cable; null between switches.
WITH infiniband AS (
  SELECT p.device, p.port, p.owner, p.part, p.is_nic
  FROM port_parts p
  WHERE (p.is_nic AND (p.owner, p.part) IN (
      SELECT host_name(host), nic FROM nccl_nics WHERE link_layer = 'IB' AND host IS NOT NULL AND nic IS NOT NULL
      UNION
      SELECT host_name(device), nic FROM device_names WHERE nic IS NOT NULL AND device IS NOT NULL
      UNION
      SELECT host_name(device), split_part(port, '/', 1) FROM named_status
      WHERE link_layer = 'InfiniBand' AND device IS NOT NULL
    ))
    OR (NOT p.is_nic AND p.owner IN (SELECT device FROM evidence.switch_systems WHERE system = 'infiniband'))
),
speeds AS (
  SELECT p.owner, p.part, max(s.speed_gbps) AS speed_gbps
  FROM named_status s JOIN port_parts p USING (device, port) GROUP BY p.owner, p.part
),
waits AS (
  SELECT i.owner, i.part, i.is_nic, r.format, r.ts, r.seconds,
    least(1, 8e-9 * r.xmit_wait * CASE WHEN coalesce(s.speed_gbps, f.speed_gbps) > $slow_gbps THEN $tick_bytes
      ELSE $slow_tick_bytes END / coalesce(s.speed_gbps, f.speed_gbps, $slow_gbps) / r.seconds) AS share
  FROM port_rates r JOIN infiniband i USING (device, port)
  LEFT JOIN speeds s ON s.owner = i.owner AND s.part = i.part
  LEFT JOIN cable_ends c ON c.owner = i.owner AND c.part = i.part
  LEFT JOIN speeds f ON f.owner = c.far_owner AND f.part = c.far_part
  WHERE r.xmit_wait IS NOT NULL AND NOT coalesce(r.gap, false)
),
pairs AS (
  SELECT *, least(share, lag(share) OVER (PARTITION BY owner, part, format ORDER BY ts)) AS lasting FROM waits
)
SELECT p.owner, p.part, CASE WHEN p.is_nic THEN p.owner WHEN c.far_is_nic THEN host_name(c.far_owner) END AS host,
  CASE WHEN p.is_nic THEN p.part WHEN c.far_is_nic THEN c.far_part END AS nic,
  max(p.lasting) AS share, median(p.seconds) AS usual_seconds
FROM pairs p LEFT JOIN cable_ends c ON c.owner = p.owner AND c.part = p.part
GROUP BY ALL
HAVING max(p.lasting) IS NOT NULL
ORDER BY share DESC, p.owner, p.part
