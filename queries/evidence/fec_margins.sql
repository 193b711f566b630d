-- question: How many of the bits on its line did FEC correct at each port, in each interval?
-- FEC works on all code words, idle ones too: the rate is of the bits that the line's speed makes. Some devices
-- count code words or symbols, which are no more than their wrong bits: `ber` is the least that it can be.
-- `allowed` is what the code of the lane's speed is specified for.
WITH rises AS (
  SELECT coalesce(p.owner, r.device) AS owner, coalesce(p.part, r.port) AS part,
    coalesce(p.is_nic, false) AS is_nic, r.format, r.ts_before, r.ts, r.seconds, r.fec_corrected,
    sum(r.fec_corrected) OVER (PARTITION BY p.owner, p.part, r.format) AS seen
  FROM port_rates r LEFT JOIN port_parts p USING (device, port)
  WHERE r.fec_corrected > 0 AND r.seconds > 0
),
best AS (
  SELECT * FROM rises QUALIFY dense_rank() OVER (PARTITION BY owner, part ORDER BY seen DESC, format) = 1
),
lanes AS (
  SELECT coalesce(p.owner, s.device) AS owner, coalesce(p.part, s.port) AS part,
    max(s.speed_gbps / s.lanes) AS lane_gbps
  FROM named_status s LEFT JOIN port_parts p USING (device, port)
  WHERE s.lanes > 0 AND s.speed_gbps > 0 GROUP BY ALL
)
SELECT CASE WHEN b.is_nic THEN 'nic' ELSE 'port' END AS type,
  CASE WHEN b.is_nic THEN b.owner END AS host, CASE WHEN b.is_nic THEN b.part END AS nic,
  CASE WHEN NOT b.is_nic THEN b.owner END AS switch, CASE WHEN NOT b.is_nic THEN b.part END AS port,
  b.owner || ' ' || b.part AS near, s.far_owner || ' ' || s.far_part AS far, b.ts_before, b.ts,
  b.fec_corrected / (s.speed_gbps * 1e9 * b.seconds) AS ber,
  CASE WHEN l.lane_gbps < 30 THEN $ber_slow ELSE $ber END AS allowed
FROM best b
JOIN evidence.port_speeds s USING (owner, part)
LEFT JOIN lanes l USING (owner, part)
WHERE s.speed_gbps > 0
ORDER BY b.owner, b.part, b.ts
