-- question: What is each port of a host or switch cabled to, and what did it carry and count?
-- columns:
--   owner       Host or switch
--   is_host     Whether it is a host
--   part        Port, or NIC of a host
--   far_owner   Host or switch at the other end of the cable
--   far_part    Its port or NIC
--   speed_gbps  Rate of the link as last told, Gb/s
--   busiest_gbps  Most it sent or received in an interval, Gb/s
--   errors      Rise of all error counters
--   pauses      Pause frames sent and received
WITH parts AS (
  SELECT owner, part, bool_or(is_nic) AS is_nic FROM (
    SELECT owner, part, is_nic FROM port_parts
    UNION ALL SELECT owner, part, is_nic FROM cable_ends
  )
  GROUP BY owner, part
),
speeds AS (
  SELECT p.owner, p.part,
    arg_max(s.speed_gbps, coalesce(s.ts, '1970-01-01'::TIMESTAMP)) AS speed_gbps
  FROM named_status s JOIN port_parts p USING (device, port)
  WHERE s.speed_gbps IS NOT NULL
  GROUP BY p.owner, p.part
),
traffic AS (
  SELECT p.owner, p.part, 8e-9 * max(greatest(r.rx_bytes, r.tx_bytes) / r.seconds) AS busiest_gbps
  FROM port_traffic r JOIN port_parts p USING (device, port)
  WHERE r.seconds > 0
  GROUP BY p.owner, p.part
),
errors AS (
  SELECT p.owner, p.part, sum(e.risen)::BIGINT AS errors
  FROM error_rises e JOIN port_parts p USING (device, port)
  GROUP BY p.owner, p.part
),
pauses AS (
  SELECT p.owner, p.part, round(sum(
    (coalesce(i.tx_frames_per_second, 0) + coalesce(i.rx_frames_per_second, 0)) * i.seconds
  ))::BIGINT AS pauses
  FROM pause_intervals i JOIN port_parts p USING (device, port)
  GROUP BY p.owner, p.part
)
SELECT a.owner,
  a.is_nic OR a.owner IN (SELECT host FROM training_hosts) AS is_host,
  a.part, c.far_owner, c.far_part, s.speed_gbps, t.busiest_gbps, e.errors, q.pauses
FROM parts a
LEFT JOIN cable_ends c ON c.owner = a.owner AND c.part = a.part
LEFT JOIN speeds s ON s.owner = a.owner AND s.part = a.part
LEFT JOIN traffic t ON t.owner = a.owner AND t.part = a.part
LEFT JOIN errors e ON e.owner = a.owner AND e.part = a.part
LEFT JOIN pauses q ON q.owner = a.owner AND q.part = a.part
ORDER BY a.owner, regexp_replace(a.part, '\d+', '#', 'g'),
  list_transform(regexp_extract_all(a.part, '\d+'), lambda n: n::BIGINT), a.part
