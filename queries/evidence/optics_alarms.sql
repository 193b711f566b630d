-- question: Of which ports did the switch's log or the module itself say that the optics left their range, and did it clear?
-- A row is a port. A port that is down, or whose far end is, receives no light: its alarm tells nothing, within
-- `$settle` seconds of the time for which its log or its status says so. `severe` is an alarm, not only a warning; `ended` is when the log said that the last one cleared.
-- A module keeps the flag of an alarm that is over until it is read: its flag of low received power counts only where that lane
-- receives `$dimmer` dB less than modules of its kind mostly do at the same reading.
WITH changes AS (
  SELECT host, part, kind, ts,
    min(ts) FILTER (kind = 'port_up') OVER (
      PARTITION BY host, part ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
    ) AS next_up
  FROM events WHERE kind IN ('port_down', 'port_disabled', 'port_up') AND ts IS NOT NULL
),
told AS (
  SELECT coalesce(p.owner, host_name(e.host)) AS owner, coalesce(p.part, e.part) AS part, e.ts,
    coalesce(e.text, '') AS said, said ILIKE '%clear%' AS clears
  FROM events e LEFT JOIN port_parts p ON host_name(p.device) = host_name(e.host) AND p.port = e.part
  WHERE e.kind = 'optics_alarm' AND e.ts IS NOT NULL AND e.host IS NOT NULL AND e.part IS NOT NULL
    AND NOT EXISTS (
      FROM changes c WHERE c.host = e.host AND c.part = e.part AND c.kind <> 'port_up'
        AND e.ts >= c.ts - to_seconds($settle) AND e.ts <= coalesce(c.next_up, e.ts) + to_seconds($settle)
    )
),
lanes AS (
  SELECT host_name(device) AS device, port, lane, ts, format, max(rx_power_dbm) AS power,
    max(alarm) FILTER (alarm ILIKE '%rx power low%alarm%') AS alarm
  FROM optics WHERE ts IS NOT NULL AND port IS NOT NULL
  GROUP BY ALL
),
usual AS (SELECT format, median(power) AS power FROM lanes GROUP BY format),
noted AS (
  SELECT coalesce(p.owner, l.device) AS owner, coalesce(p.part, l.port) AS part, coalesce(p.is_nic, false) AS is_nic, l.ts,
    format('{}, lane {} receives {:.1f} dBm', l.alarm, coalesce(l.lane::VARCHAR, '-'), l.power) AS said, false AS clears
  FROM lanes l JOIN usual u USING (format)
  LEFT JOIN port_parts p ON host_name(p.device) = l.device AND p.port = l.port
  WHERE l.alarm IS NOT NULL AND l.power < u.power - $dimmer
),
all_told AS (
  SELECT owner, part, false AS is_nic, ts, said, clears FROM told
  UNION ALL SELECT owner, part, is_nic, ts, said, clears FROM noted
),
dark AS (
  SELECT coalesce(p.owner, s.device) AS owner, coalesce(p.part, s.port) AS part
  FROM named_status s LEFT JOIN port_parts p USING (device, port)
  WHERE s.oper IS NOT NULL GROUP BY ALL HAVING NOT bool_or(s.oper = 'up')
)
SELECT CASE WHEN bool_or(t.is_nic) THEN 'nic' ELSE 'port' END AS type,
  CASE WHEN type = 'nic' THEN t.owner END AS host, CASE WHEN type = 'nic' THEN t.part END AS nic,
  CASE WHEN type = 'port' THEN t.owner END AS switch, CASE WHEN type = 'port' THEN t.part END AS port,
  t.owner || ' ' || t.part AS near,
  any_value(c.far_owner || ' ' || c.far_part) AS far, count(*) FILTER (NOT t.clears) AS alarms,
  string_agg(DISTINCT t.said, '; ' ORDER BY t.said) FILTER (NOT t.clears AND t.said <> '') AS said,
  coalesce(bool_or(NOT t.clears AND t.said NOT ILIKE '%warning%'), false) AS severe,
  min(t.ts) FILTER (NOT t.clears) AS ts_before,
  CASE WHEN arg_max(t.clears, t.ts) THEN max(t.ts) END AS ended,
  coalesce(ended, max(t.ts) FILTER (NOT t.clears)) AS ts
FROM all_told t
LEFT JOIN cable_ends c ON c.owner = t.owner AND c.part = t.part
WHERE NOT EXISTS (FROM dark d WHERE d.owner = t.owner AND d.part = t.part)
GROUP BY t.owner, t.part
ORDER BY near
