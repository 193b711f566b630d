-- question: Of which ports did the switch's log say that the optics left their range, and did it clear?
-- A row is a port. A port that is down, or whose far end is, receives no light: its alarm tells nothing, within
-- `$settle` seconds of the time for which its log or its status says so. `severe` is an alarm, not only a warning; `ended` is when the log said that the last one cleared.
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
dark AS (
  SELECT coalesce(p.owner, s.device) AS owner, coalesce(p.part, s.port) AS part
  FROM named_status s LEFT JOIN port_parts p USING (device, port)
  WHERE s.oper IS NOT NULL GROUP BY ALL HAVING NOT bool_or(s.oper = 'up')
)
SELECT 'port' AS type, t.owner AS switch, t.part AS port, t.owner || ' ' || t.part AS near,
  any_value(c.far_owner || ' ' || c.far_part) AS far, count(*) FILTER (NOT t.clears) AS alarms,
  string_agg(DISTINCT t.said, '; ' ORDER BY t.said) FILTER (NOT t.clears AND t.said <> '') AS said,
  coalesce(bool_or(NOT t.clears AND t.said NOT ILIKE '%warning%'), false) AS severe,
  min(t.ts) FILTER (NOT t.clears) AS ts_before,
  CASE WHEN arg_max(t.clears, t.ts) THEN max(t.ts) END AS ended,
  coalesce(ended, max(t.ts) FILTER (NOT t.clears)) AS ts
FROM told t
LEFT JOIN cable_ends c ON c.owner = t.owner AND c.part = t.part
WHERE NOT EXISTS (FROM dark d WHERE d.owner = t.owner AND d.part = t.part)
GROUP BY t.owner, t.part
ORDER BY switch, port
