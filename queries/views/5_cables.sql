-- What the RDMA ports of hosts are called: by verbs (mlx5_0/1), as a device, as a net device. A
-- name that two NICs of a host share names neither.
CREATE OR REPLACE TABLE nic_names AS
WITH known AS (
  SELECT host_name(device) AS host, port, alias FROM named_status
  WHERE regexp_matches(port, '^[a-z][a-z0-9_]*/\d+$')
  UNION
  SELECT host, nic || '/1', net_device FROM rank_paths WHERE nic IS NOT NULL
  UNION
  SELECT host_name(device), nic || '/1', NULL FROM device_names WHERE nic IS NOT NULL
  UNION
  -- Counters alone tell it of some hosts.
  SELECT t.host, c.port, NULL FROM counting_ports c JOIN training_hosts t ON t.host = host_name(c.device)
  WHERE regexp_matches(c.port, '^[a-z][a-z0-9_]*/\d+$')
),
names AS (
  SELECT host, split_part(port, '/', 1) AS nic,
    unnest([port, split_part(port, '/', 1), alias]) AS name
  FROM known
)
SELECT host, name, any_value(nic) AS nic FROM names
WHERE name IS NOT NULL GROUP BY host, name HAVING count(DISTINCT nic) = 1;

-- The part a port is, whatever counters, status commands and neighbours call it: `owner` and `part`
-- are host and NIC, or switch and port. An InfiniBand fabric names hosts that no job uses, too.
CREATE OR REPLACE TABLE port_parts AS
WITH hosts AS (
  SELECT host FROM training_hosts
  UNION
  SELECT host_name(device) FROM device_names WHERE nic IS NOT NULL
),
asked AS (
  FROM counting_ports
  UNION SELECT device, port FROM named_status
  UNION SELECT device, port FROM canonical_links
  UNION SELECT remote_device, remote_port FROM canonical_links
  UNION SELECT remote_device, remote_port_description FROM canonical_links
)
SELECT c.device, c.port, CASE WHEN h.host IS NULL AND n.nic IS NULL THEN c.device
    ELSE host_name(c.device) END AS owner,
  coalesce(n.nic, a.port, c.port) AS part, h.host IS NOT NULL OR n.nic IS NOT NULL AS is_nic
FROM asked c
LEFT JOIN nic_names n ON n.host = host_name(c.device) AND n.name = c.port
LEFT JOIN port_aliases a ON a.device = host_name(c.device) AND a.name = c.port
LEFT JOIN hosts h ON h.host = host_name(c.device)
WHERE c.device IS NOT NULL AND c.port IS NOT NULL;

-- What each port of a switch is set to, by its part, as last told (`profile` as in switch_settings); `part` is null
-- of what the whole switch is set to.
CREATE OR REPLACE VIEW port_settings AS
SELECT coalesce(p.owner, s.device) AS owner, coalesce(p.part, s.port) AS part, s.profile, s.name,
  arg_max(s.value, coalesce(s.ts, '1970-01-01'::TIMESTAMP)) AS value
FROM switch_settings s LEFT JOIN port_parts p USING (device, port)
GROUP BY ALL;

-- The priorities that each port of a switch protects from drops, `none` or `3,4`. A port whose configuration sets none
-- protects none where a statement a port turns PFC on (EOS `priority-flow-control`, SONiC `pfc_enable`, a congestion
-- notification profile of Junos, `pfc` of Cumulus and SR Linux); NX-OS asks its neighbour.
CREATE OR REPLACE VIEW protecting_ports AS
SELECT s.owner, s.part, CASE WHEN s.value = 'not set' THEN 'none' ELSE s.value END AS classes
FROM port_settings s LEFT JOIN configured_systems c ON c.device = s.owner
WHERE s.name = 'lossless_priorities'
  AND (regexp_full_match(s.value, 'none|\d(,\d)*') OR (s.value = 'not set' AND c.system IN ('EOS', 'SONiC', 'Junos', 'SR Linux', 'Cumulus')));

-- Each end of a known cable once, with the part at its other end, as last told by either end.
CREATE OR REPLACE TABLE cable_ends AS
WITH told AS (
  SELECT p.owner, p.part, p.is_nic, r.owner AS far_owner, r.part AS far_part,
    r.is_nic AS far_is_nic, l.ts, l.planned,
    -- A net device's name before an address that names nothing, what devices tell before a plan.
    row_number() OVER (PARTITION BY p.owner, p.part ORDER BY l.planned, l.ts DESC NULLS LAST,
      n.nic IS NULL, regexp_matches(r.port, '^([0-9A-Fa-f]{2}:){5}')) AS rank
  FROM canonical_links l
  JOIN port_parts p ON p.device = l.device AND p.port = l.port
  JOIN port_parts r ON r.device = l.remote_device
    AND (r.port = l.remote_port OR (r.port = l.remote_port_description
      AND (r.is_nic OR regexp_matches(l.remote_port, '^([0-9A-Fa-f]{2}:){5}'))))
  LEFT JOIN nic_names n ON n.host = r.owner AND n.name = r.port
),
ends AS (
  SELECT owner, part, is_nic, far_owner, far_part, far_is_nic, ts, planned FROM told WHERE rank = 1
  UNION ALL
  SELECT far_owner, far_part, far_is_nic, owner, part, is_nic, ts, planned FROM told WHERE rank = 1
)
SELECT * FROM ends
QUALIFY row_number() OVER (
  PARTITION BY owner, part ORDER BY planned, ts DESC NULLS LAST, far_owner, far_part
) = 1;
