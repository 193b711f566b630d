-- question: Which storms did the PFC watchdogs of the switches detect, and where do they watch?
-- By their counters; a log tells of ports of which no counter does. A row of a log is a storm from its
-- beginning to its end, if that is told.
WITH counted AS (
  SELECT device, port, ts_before, ts, pfcwd_detected AS detected
  FROM priority_rates WHERE pfcwd_detected IS NOT NULL
),
logged AS (
  SELECT host, part, code, kind, ts, lead(ts) OVER w AS next_ts, lead(kind) OVER w AS next_kind
  FROM events WHERE kind IN ('pfc_storm', 'pfc_storm_over') AND ts IS NOT NULL
  WINDOW w AS (PARTITION BY host, part, code ORDER BY ts, kind)
),
placed AS (
  SELECT DISTINCT coalesce(p.owner, l.host) AS device, coalesce(p.part, l.part) AS port, l.ts AS ts_before,
    CASE WHEN l.next_kind = 'pfc_storm_over' THEN l.next_ts ELSE l.ts END AS ts, 1 AS detected
  FROM logged l LEFT JOIN port_parts p ON host_name(p.device) = host_name(l.host) AND p.port = l.part
  WHERE l.kind = 'pfc_storm'
),
detected AS (
  FROM counted
  UNION ALL BY NAME
  FROM placed ANTI JOIN counted USING (device, port)
)
SELECT d.device AS switch, d.port, c.far_owner AS host, c.far_part AS nic, d.device, d.ts_before, d.ts, d.detected
FROM detected d
LEFT JOIN cable_ends c ON c.owner = d.device AND c.part = d.port AND c.far_is_nic
ORDER BY d.device, d.port, d.ts
