-- What of the fabric and the hosts is not as it was: devices, cables, ports, speeds, firmware, drivers, settings and routes.
-- Each side is from a begin to an end, null: open. What a source said last on each side, of devices that it told of on both;
-- `before` or `after` is null where it was not told. A change that both ends of a cable tell is one, and so is a cable that
-- moved with the ports that it left and came to, and a device that came or went with its cables.
CREATE OR REPLACE MACRO changes_between(begin_1, end_1, begin_2, end_2) AS TABLE
WITH sides AS (
  SELECT 1 AS side, begin_1::TIMESTAMP AS begun, end_1::TIMESTAMP AS ended
  UNION ALL SELECT 2, begin_2::TIMESTAMP, end_2::TIMESTAMP
),
facts AS (
  SELECT 'port' AS kind, format AS source, device, port AS part, 'state' AS name, oper AS value, ts FROM named_status
  UNION ALL SELECT 'speed', format, device, port, 'speed', format('{:g} Gb/s', speed_gbps), ts FROM named_status WHERE oper IS DISTINCT FROM 'down' AND speed_gbps > 0
  UNION ALL SELECT 'speed', format, device, port, 'lanes', lanes::VARCHAR, ts FROM named_status WHERE oper IS DISTINCT FROM 'down'
  UNION ALL SELECT 'setting', format, device, port, 'MTU', mtu::VARCHAR, ts FROM named_status
  UNION ALL SELECT 'setting', format, device, port, 'FEC', fec, ts FROM named_status WHERE oper IS DISTINCT FROM 'down'
  UNION ALL SELECT CASE WHEN s.profile = 'route' THEN 'route' ELSE 'setting' END, s.format, coalesce(n.device, s.device), s.port,
    CASE WHEN s.profile = 'route' THEN s.name ELSE concat_ws(' ', s.profile, s.queue, s.name) END, s.value, s.ts
  FROM settings s LEFT JOIN device_names n ON n.id = s.device
  UNION ALL SELECT CASE WHEN regexp_matches(fact, '(?i)firmware|fw_ver|psid') THEN 'firmware'
      WHEN regexp_matches(fact, '(?i)driver|^module$') THEN 'driver' ELSE 'setting' END,
    'facts of hosts', host, part, fact, value, ts
  FROM hosts
  WHERE NOT regexp_matches(fact, '(?i)errors|rpm|power|temp|uptime|status|voltage|current|^NVLink \d+$')
  UNION ALL SELECT 'firmware', format, device, port, 'firmware of the module', firmware, ts FROM optics
  UNION ALL SELECT 'cable', format, device, port, 'module', serial, ts FROM optics
),
told AS (
  SELECT s.side, f.kind, f.source, coalesce(p.owner, host_name(f.device)) AS device, coalesce(p.part, f.part) AS part, f.name, f.value
  FROM facts f JOIN sides s ON (s.begun IS NULL OR f.ts > s.begun) AND (s.ended IS NULL OR f.ts <= s.ended)
  LEFT JOIN port_parts p ON p.device = f.device AND p.port = f.part
  WHERE f.device IS NOT NULL AND f.value IS NOT NULL AND f.ts IS NOT NULL
  QUALIFY f.ts = max(f.ts) OVER (PARTITION BY s.side, f.kind, f.source, f.device, f.part, f.name)
),
last_told AS (
  SELECT side, kind, source, device, part, name, string_agg(DISTINCT value, ', ' ORDER BY value) AS value
  FROM told GROUP BY side, kind, source, device, part, name
),
asked AS (SELECT kind, source, device FROM last_told GROUP BY kind, source, device HAVING count(DISTINCT side) = 2),
changed AS (
  SELECT DISTINCT kind, device, part, name,
    any_value(value) FILTER (side = 1) AS before, any_value(value) FILTER (side = 2) AS after
  FROM last_told SEMI JOIN asked USING (kind, source, device)
  GROUP BY kind, source, device, part, name
  -- A port that is down has no speed: that is no change of its own.
  HAVING before IS DISTINCT FROM after AND (name NOT IN ('speed', 'lanes', 'FEC') OR (before IS NOT NULL AND after IS NOT NULL))
),
cables AS (
  SELECT s.side, l.format, host_name(l.device) AS teller, coalesce(p.owner, l.device) AS owner, coalesce(p.part, l.port) AS part,
    coalesce(r.owner, l.remote_device) AS far_owner, coalesce(r.part, l.remote_port, '') AS far_part
  FROM stated_links l JOIN sides s ON (s.begun IS NULL OR l.ts > s.begun) AND (s.ended IS NULL OR l.ts <= s.ended)
  LEFT JOIN port_parts p ON p.device = l.device AND p.port = l.port
  LEFT JOIN port_parts r ON r.device = l.remote_device AND r.port = coalesce(
    CASE WHEN regexp_matches(l.remote_port, '^([0-9A-Fa-f]{2}:){5}') THEN l.remote_port_description END, l.remote_port)
  -- A LID that names no device may be another one's on the other side.
  WHERE l.remote_device IS NOT NULL AND l.port IS NOT NULL AND l.remote_device NOT LIKE 'lid %'
  -- A device tells all of its cables at once, or in the minutes of one round of reading.
  QUALIFY l.ts >= max(l.ts) OVER (PARTITION BY s.side, l.format, l.device) - INTERVAL 10 MINUTE
),
told_twice AS (SELECT format, teller FROM cables GROUP BY format, teller HAVING count(DISTINCT side) = 2),
pairs AS (
  SELECT DISTINCT side, least(owner || ' ' || part, far_owner || ' ' || far_part) AS a,
    greatest(owner || ' ' || part, far_owner || ' ' || far_part) AS b
  FROM cables SEMI JOIN told_twice USING (format, teller)
),
gone AS (SELECT a, b FROM pairs WHERE side = 1 EXCEPT SELECT a, b FROM pairs WHERE side = 2),
added AS (SELECT a, b FROM pairs WHERE side = 2 EXCEPT SELECT a, b FROM pairs WHERE side = 1),
gone_ends AS (SELECT a AS here, b AS peer FROM gone UNION ALL SELECT b, a FROM gone),
added_ends AS (SELECT a AS here, b AS peer FROM added UNION ALL SELECT b, a FROM added),
-- A cable that moved keeps one end; where both ends are of others now, each end has a row.
moved AS (
  SELECT g.here, g.peer AS before, n.peer AS after, count(*) OVER (PARTITION BY least(g.here, g.peer), greatest(g.here, g.peer)) AS ends,
    count(*) OVER (PARTITION BY least(n.here, n.peer), greatest(n.here, n.peer)) AS new_ends
  FROM gone_ends g JOIN added_ends n USING (here)
),
-- What is told of each device, whoever tells it: one that nothing tells of on a side is not there.
present AS (
  SELECT side, device FROM told
  UNION SELECT side, teller FROM cables
  UNION SELECT side, owner FROM cables
  UNION SELECT side, far_owner FROM cables
),
plugs AS (
  SELECT c.side, c.owner AS device, c.owner || ' ' || c.part AS here, c.far_owner || ' ' || c.far_part AS peer FROM cables c
  UNION SELECT c.side, c.far_owner, c.far_owner || ' ' || c.far_part, c.owner || ' ' || c.part FROM cables c
),
down AS (
  SELECT concat_ws(' ', device, part) AS here FROM changed WHERE kind = 'port' AND after = 'down'
),
-- A port that is down hides its peer: that one cable of a device is gone says no more than the port.
device_cables AS (
  SELECT p.side, p.device, p.here, p.peer
  FROM plugs p
  WHERE (p.side = 2 AND (least(p.here, p.peer), greatest(p.here, p.peer)) IN (FROM added)
    OR p.side = 1 AND (least(p.here, p.peer), greatest(p.here, p.peer)) IN (FROM gone))
    AND NOT EXISTS (FROM present o WHERE o.side = 3 - p.side AND o.device = p.device)
  QUALIFY p.side = 2 OR count(DISTINCT p.here) OVER (PARTITION BY p.side, p.device) > 1
    OR p.peer NOT IN (SELECT here FROM down)
),
devices AS (
  SELECT side, device, count(DISTINCT peer) AS cables, list_sort(list(DISTINCT peer)) AS peers
  FROM device_cables d
  WHERE NOT EXISTS (
    FROM device_cables o JOIN moved m ON o.here IN (m.here, m.before, m.after) OR o.peer IN (m.here, m.before, m.after)
    WHERE o.side = d.side AND o.device = d.device
  )
  GROUP BY side, device
),
of_devices AS (SELECT here, peer FROM device_cables SEMI JOIN devices USING (side, device)),
-- Ports at which a cable or a device came or went: that they came up, or went down, is told with it.
replugged AS (
  SELECT here FROM of_devices UNION SELECT peer FROM of_devices
  UNION SELECT here FROM moved UNION SELECT before FROM moved UNION SELECT after FROM moved
),
cable_changes AS (
  -- Of two cables that are swapped each of four ends has another peer: the end that sorts first tells it.
  SELECT here, before, after FROM moved
  QUALIFY row_number() OVER (PARTITION BY least(here, before), greatest(here, before) ORDER BY new_ends, here) = 1
  UNION ALL
  SELECT a, b, NULL FROM gone g
  WHERE NOT EXISTS (FROM of_devices d WHERE d.here IN (g.a, g.b) AND d.peer IN (g.a, g.b)) AND NOT EXISTS (FROM moved m WHERE (m.here = g.a AND m.before = g.b) OR (m.here = g.b AND m.before = g.a))
    AND NOT EXISTS (FROM changed c WHERE c.kind = 'port' AND c.after = 'down' AND concat_ws(' ', c.device, c.part) IN (g.a, g.b))
  UNION ALL
  SELECT a, NULL, b FROM added n
  WHERE NOT EXISTS (FROM of_devices d WHERE d.here IN (n.a, n.b) AND d.peer IN (n.a, n.b)) AND NOT EXISTS (FROM moved m WHERE (m.here = n.a AND m.after = n.b) OR (m.here = n.b AND m.after = n.a))
    AND NOT EXISTS (FROM changed c WHERE c.kind = 'port' AND c.after = 'up' AND concat_ws(' ', c.device, c.part) IN (n.a, n.b))
),
-- Of a link with fewer lanes its speed tells it.
still AS (
  SELECT c.* FROM changed c
  WHERE NOT ((c.kind = 'port' OR c.name = 'module' OR c.before IS NULL OR c.after IS NULL)
      AND concat_ws(' ', c.device, c.part) IN (SELECT here FROM replugged))
    AND NOT (c.name = 'lanes' AND EXISTS (
      FROM changed s LEFT JOIN cable_ends e ON e.owner = c.device AND e.part = c.part
      WHERE s.name = 'speed' AND (s.device = c.device AND s.part = c.part OR s.device = e.far_owner AND s.part = e.far_part)))
)
SELECT c.kind, concat_ws(' ', c.device, c.part) AS part, c.name, c.before, c.after
FROM still c
LEFT JOIN cable_ends e ON e.owner = c.device AND e.part = c.part AND c.kind IN ('port', 'speed')
LEFT JOIN still f ON f.device = e.far_owner AND f.part = e.far_part AND f.kind = c.kind AND f.name = c.name
  AND f.before IS NOT DISTINCT FROM c.before AND f.after IS NOT DISTINCT FROM c.after
GROUP BY c.kind, c.device, c.part, c.name, c.before, c.after
HAVING count(f.device) = 0 OR concat_ws(' ', c.device, c.part) < min(concat_ws(' ', f.device, f.part))
UNION ALL
SELECT 'cable', here, 'peer', before, after FROM cable_changes
UNION ALL
SELECT 'device', device, 'cables', CASE WHEN side = 1 THEN told_peers END, CASE WHEN side = 2 THEN told_peers END
FROM (
  SELECT *, array_to_string(peers[:4], ', ') || CASE WHEN cables > 4 THEN ' and ' || (cables - 4) || ' more' ELSE '' END AS told_peers
  FROM devices
);
