-- question: Which ports carry nothing, or are down, at the end of what is known of them, and since when?
-- `alive_from` is when the last interval with traffic begins, or the last status `up`.
-- A hundredth of the most that a port carried is LLDP, or no traffic at all. A silent port is known as long as its device
-- carries traffic over other ports: where all are silent, the job has ended. Silence tells nothing of a port that was
-- silent half of the time before, as that of a spare host.
WITH carried AS (
  SELECT device, port, ts_before, ts,
    (coalesce(rx_bytes, rx_packets, 0) + coalesce(tx_bytes, tx_packets, 0)) / seconds AS rate
  FROM port_traffic
),
most AS (
  SELECT device, port, max(rate) AS rate FROM carried GROUP BY device, port
),
signs AS (
  SELECT device, port, c.ts_before, c.ts, c.rate > 0.01 * m.rate AS alive, false AS told
  FROM carried c JOIN most m USING (device, port)
  UNION ALL
  SELECT device, port, ts, ts, oper = 'up', true FROM named_status
  WHERE ts IS NOT NULL AND oper IN ('up', 'down')
),
busy AS (
  SELECT device, max(ts) AS until FROM signs WHERE alive AND NOT told GROUP BY device
),
parts AS (
  SELECT coalesce(p.owner, s.device) AS owner, coalesce(p.part, s.port) AS part, s.ts_before, s.ts, s.alive, s.told,
    s.told OR s.ts <= b.until AS counts
  FROM signs s
  LEFT JOIN port_parts p USING (device, port)
  LEFT JOIN busy b USING (device)
),
last_signs AS (
  SELECT owner, part, max(ts_before) FILTER (alive) AS alive_from, max(ts) FILTER (alive) AS alive_until
  FROM parts GROUP BY owner, part
),
used AS (
  SELECT owner, part FROM parts p JOIN last_signs l USING (owner, part)
  WHERE NOT p.told AND p.ts <= l.alive_until
  GROUP BY owner, part HAVING avg(p.alive::INTEGER) > 0.5
)
SELECT owner, part, any_value(l.alive_from) AS alive_from, max(p.ts) AS known_until
FROM parts p JOIN last_signs l USING (owner, part) LEFT JOIN used u USING (owner, part)
WHERE NOT p.alive AND p.counts AND p.ts > l.alive_until
GROUP BY owner, part
-- One silent interval may be a pause of the job.
HAVING count(u.owner) FILTER (NOT p.told) >= 2 OR bool_or(p.told)
ORDER BY owner, part
