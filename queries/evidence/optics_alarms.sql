-- question: Of which ports did the switch's log or the module itself say that the optics left their range, and did it clear?
-- A row is a port. A port that is down, or whose far end is, receives no light: its alarm tells nothing, within
-- `$settle` seconds of the time for which its log or its status says so. `severe` is an alarm, not only a warning;
-- `ended` is when the last of its alarms cleared, if each did: light that is back ends no alarm of the temperature. An
-- alarm that did not clear lasts until the data end. Junos names a port without its media type.
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
  SELECT coalesce(p.owner, host_name(e.host)) AS owner, coalesce(p.part, e.part) AS part, false AS is_nic, e.ts, e.line,
    coalesce(e.text, '') AS said, said ILIKE '%clear%' AS clears,
    regexp_replace(lower(said), '\s*(set|cleared)$', '') AS what
  FROM (SELECT *, [part, 'et-' || part, 'xe-' || part, 'ge-' || part] AS parts FROM events) e
  LEFT JOIN port_parts p ON host_name(p.device) = host_name(e.host) AND list_contains(e.parts, p.port)
  WHERE e.kind = 'optics_alarm' AND e.ts IS NOT NULL AND e.host IS NOT NULL AND e.part IS NOT NULL
    AND (clears OR NOT EXISTS (
      FROM changes c
      WHERE c.host = e.host AND list_contains(e.parts, c.part) AND c.kind <> 'port_up'
        AND e.ts >= c.ts - to_seconds($settle) AND e.ts <= coalesce(c.next_up, e.ts) + to_seconds($settle)
    ))
),
lanes AS (
  SELECT host_name(device) AS device, port, lane, ts, format, max(rx_power_dbm) AS power,
    max(alarm) FILTER (alarm ILIKE '%rx power low%alarm%') AS alarm
  FROM optics WHERE ts IS NOT NULL AND port IS NOT NULL
  GROUP BY ALL
),
usual AS (SELECT format, median(power) AS power FROM lanes GROUP BY format),
read AS (
  SELECT l.*, l.power < u.power - $dimmer AS dim, coalesce(dim AND l.alarm IS NOT NULL, false) AS alarms
  FROM lanes l JOIN usual u USING (format)
),
noted AS (
  SELECT coalesce(p.owner, r.device) AS owner, coalesce(p.part, r.port) AS part, coalesce(p.is_nic, false) AS is_nic, r.ts, 0 AS line,
    format('{}, lane {} receives {:.1f} dBm', r.alarm, coalesce(r.lane::VARCHAR, '-'), r.power) AS said, NOT r.alarms AS clears,
    format('lane {}', coalesce(r.lane::VARCHAR, '-')) AS what
  FROM read r
  LEFT JOIN port_parts p ON host_name(p.device) = r.device AND p.port = r.port
  WHERE r.alarms OR NOT r.dim
),
each_last AS (
  SELECT owner, part, is_nic, ts, said, clears,
    last_value(clears) OVER (
      PARTITION BY owner, part, what ORDER BY ts, line, clears ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS cleared
  FROM (FROM told UNION ALL BY NAME FROM noted)
),
-- Of a port on which an alarm is still on, those that cleared are told no more.
latest AS (
  SELECT *, bool_and(cleared) OVER (PARTITION BY owner, part) AS over,
    NOT clears AND (over OR NOT cleared) AS raised
  FROM each_last
),
last_told AS (
  SELECT max(ts) AS ts FROM (SELECT ts FROM events UNION ALL SELECT ts FROM port_samples UNION ALL SELECT ts FROM steps)
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
  any_value(c.far_owner || ' ' || c.far_part) AS far, count(*) FILTER (t.raised) AS alarms,
  string_agg(DISTINCT t.said, '; ' ORDER BY t.said) FILTER (t.raised AND t.said <> '') AS said,
  coalesce(bool_or(t.raised AND t.said NOT ILIKE '%warning%'), false) AS severe,
  min(t.ts) FILTER (t.raised) AS ts_before, ts_before AS sure,
  CASE WHEN bool_and(t.over) THEN max(t.ts) FILTER (t.clears) END AS ended,
  coalesce(ended, (SELECT ts FROM last_told)) AS ts
FROM latest t
LEFT JOIN cable_ends c ON c.owner = t.owner AND c.part = t.part
WHERE NOT EXISTS (FROM dark d WHERE d.owner = t.owner AND d.part = t.part)
GROUP BY t.owner, t.part
ORDER BY near
