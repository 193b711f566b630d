-- The parts of an InfiniBand node description: `MF0;leaf01:MQM9700/U1` is the switch leaf01,
-- `gpu01 mlx5_2` and `gpu01 ibp26s0` are NICs of gpu01. What a device is called when it leaves the factory names nobody:
-- it goes by its GUID. An aggregation node is SHARP's part of a switch, an HCA to the fabric.
CREATE OR REPLACE MACRO node_nic(node) AS CASE
  WHEN regexp_matches(node, 'ConnectX|Aggregation Node') THEN 'HCA'
  ELSE nullif(regexp_extract(trim(node), '^\S+\s+([a-z0-9]+_\w+|(?:roce|ib)[pos]\d\w*|HCA-\d+)$', 1), '')
END;
CREATE OR REPLACE MACRO node_device(node) AS CASE
  WHEN regexp_matches(node, 'Mellanox|ConnectX|Aggregation Node') THEN NULL
  WHEN regexp_matches(node, '^[A-Z0-9]+;[^:;]+') THEN regexp_extract(node, '^[A-Z0-9]+;([^:;]+)', 1)
  WHEN node_nic(node) IS NOT NULL THEN regexp_extract(trim(node), '^\S+')
  ELSE nullif(trim(node), '')
END;
-- The kernel's drivers of RDMA devices, and rdma-core's names by place.
CREATE OR REPLACE MACRO is_rdma_device(port) AS
  regexp_matches(port, '^(mlx[45]|bnxt_re|irdma|efa|qedr|hfi1|ionic|roce[pos]|ib[pos])_?\d');

-- Other names and addresses of hosts: what host maps say, and the addresses that NCCL states. One
-- that several hosts have (a bridge of containers) is nobody's.
CREATE OR REPLACE VIEW host_aliases AS
SELECT alias, any_value(host) AS host
FROM (
  SELECT alias, host FROM host_map
  UNION
  SELECT value, host FROM hosts WHERE fact = 'address'
)
WHERE alias IS NOT NULL AND host IS NOT NULL
GROUP BY alias
HAVING count(DISTINCT host_name(host)) = 1;

-- All names of a device, and the one it goes by. InfiniBand tools call it by GUID or, perfquery, by
-- LID alone; other tools by an address or an alias. For a NIC, `device` is its host. Two switches
-- of one name go by their GUIDs; a LID two nodes had names neither, and a cable that leads to it is told by the
-- description of its node. A table, since nearly every view below asks it: worked out once, it is a few rows.
CREATE OR REPLACE TABLE device_names AS
WITH statements AS (
  SELECT device, guid, lid, node FROM port_status
  UNION
  SELECT device, guid, lid, node FROM links
  UNION
  SELECT remote_device, remote_guid, remote_lid, remote_node FROM links
),
ids AS (
  SELECT device AS id, device AS node_guid, node FROM statements
  UNION
  SELECT guid, device, node FROM statements
  UNION
  SELECT 'lid ' || lid, device, node FROM statements
),
nodes AS (
  SELECT id, any_value(node_guid) FILTER (node_guid LIKE '0x%') AS node_guid, max(node) AS node
  FROM ids
  WHERE id LIKE '0x%' OR id LIKE 'lid %'
  GROUP BY id
  HAVING count(DISTINCT node_guid) FILTER (node_guid LIKE '0x%') <= 1
),
-- What a host says of itself: ibstat and sysfs know its GUIDs and LIDs.
said AS (
  SELECT id, any_value(device) AS device, any_value(nic) AS nic
  FROM (
    SELECT guid AS id, device, split_part(port, '/', 1) AS nic FROM port_status
    WHERE device NOT LIKE '0x%' AND guid IS NOT NULL
    UNION
    SELECT 'lid ' || lid, device, split_part(port, '/', 1) FROM port_status
    WHERE device NOT LIKE '0x%' AND lid > 0
    UNION
    SELECT '0x' || replace(value, ':', ''), host, part FROM hosts WHERE fact = 'node_guid'
  )
  GROUP BY id
  HAVING count(DISTINCT (device, nic)) = 1
),
named AS (
  SELECT n.id, n.node_guid, coalesce(n.node, o.node) AS node
  FROM nodes n LEFT JOIN nodes o ON o.id = n.node_guid
),
-- A name several GUIDs share is none, unless it names a NIC.
shared AS (
  SELECT node FROM named WHERE node_guid IS NOT NULL AND node_nic(node) IS NULL
  GROUP BY node HAVING count(DISTINCT node_guid) > 1
),
fabric AS (
  SELECT n.id,
    coalesce(
      s.device, t.device, CASE WHEN h.node IS NULL THEN node_device(n.node) END, n.node_guid, n.id
    ) AS device,
    coalesce(s.nic, t.nic, node_nic(n.node)) AS nic, n.node
  FROM named n
  LEFT JOIN said s ON s.id = n.id
  LEFT JOIN said t ON t.id = n.node_guid
  LEFT JOIN shared h ON h.node = n.node
  UNION ALL
  SELECT id, device, nic, NULL FROM said WHERE id NOT IN (SELECT id FROM nodes)
)
SELECT id, device, nic FROM fabric
UNION ALL
SELECT node, any_value(device), any_value(nic) FROM fabric
WHERE id LIKE '0x%' AND regexp_matches(node, '[; ]')
GROUP BY node HAVING count(DISTINCT (device, nic)) = 1
UNION ALL
SELECT alias, host, NULL FROM host_aliases
WHERE alias <> host AND alias NOT IN (SELECT id FROM fabric);

-- The port that a switch calls by a second name: a vendor's alias, or an object id of SAI, which may
-- name a queue or a priority group of it. `since` to `until` is the time an id names that port: a restart
-- of SONiC gives ids anew. A name that is also the first name of another port names none, nor does an
-- alias of two ports; the net device of an RDMA port stays apart from it.
CREATE OR REPLACE TABLE second_port_names AS
WITH told AS (
  SELECT DISTINCT device, alias AS name, ts, alias LIKE 'oid:0x%' AS is_id,
    alias LIKE 'oid:0x15%' AND length(alias) = 20 AS is_queue,
    alias LIKE 'oid:0x1a%' AND length(alias) = 20 AS is_group,
    port AS whole
  FROM port_status
  WHERE alias IS NOT NULL AND device IS NOT NULL AND port IS NOT NULL AND alias <> port
    AND NOT regexp_matches(port, '^[a-z][a-z0-9_]*/\d+$')
),
parts AS (
  SELECT device, name, ts, is_id,
    CASE WHEN is_queue OR is_group THEN regexp_replace(whole, ':\d+$', '') ELSE whole END AS port,
    CASE WHEN is_queue THEN regexp_extract(whole, ':(\d+)$', 1)
      WHEN is_group THEN 'PG' || regexp_extract(whole, ':(\d+)$', 1) END AS queue
  FROM told
),
-- One port at each time.
clear AS (
  SELECT device, name, CASE WHEN is_id THEN ts END AS ts, any_value(port) AS port,
    any_value(queue) AS queue
  FROM parts
  WHERE is_id OR (device, name) NOT IN (
    SELECT device, port FROM port_status WHERE device IS NOT NULL AND port IS NOT NULL
  )
  GROUP BY device, name, CASE WHEN is_id THEN ts END
  HAVING count(DISTINCT (port, coalesce(queue, ''))) = 1
),
changes AS (
  SELECT * FROM clear
  WINDOW w AS (PARTITION BY device, name ORDER BY ts NULLS FIRST)
  QUALIFY lag(port) OVER w IS NULL
    OR (port, coalesce(queue, '')) <> (lag(port) OVER w, coalesce(lag(queue) OVER w, ''))
)
SELECT device, name, port, queue,
  CASE WHEN row_number() OVER w > 1 THEN ts ELSE '-infinity'::TIMESTAMP END AS since,
  coalesce(lead(ts) OVER w, 'infinity'::TIMESTAMP) AS until
FROM changes
WINDOW w AS (PARTITION BY device, name ORDER BY ts NULLS FIRST);

-- Counters of ports, by the names the ports go by.
CREATE OR REPLACE VIEW named_samples AS
SELECT p.* REPLACE (
  coalesce(n.device, p.device) AS device,
  coalesce(n.nic || '/' || p.port, s.port, p.port) AS port
)
FROM port_samples p LEFT JOIN device_names n ON n.id = p.device
LEFT JOIN second_port_names s ON s.device = p.device AND s.name = p.port
  AND coalesce(p.ts, '9999-12-31'::TIMESTAMP) >= s.since
  AND coalesce(p.ts, '9999-12-31'::TIMESTAMP) < s.until
-- The sum over all ports of a switch is no port.
WHERE p.port IS DISTINCT FROM 'ALL';

-- Counters of priorities and queues, by the names the devices and ports go by.
CREATE OR REPLACE VIEW named_priority_samples AS
SELECT p.* REPLACE (
  coalesce(n.device, p.device) AS device, coalesce(s.port, p.port) AS port,
  coalesce(p.queue, s.queue) AS queue
)
FROM priority_samples p LEFT JOIN device_names n ON n.id = p.device
LEFT JOIN second_port_names s ON s.device = p.device AND s.name = p.port
  AND coalesce(p.ts, '9999-12-31'::TIMESTAMP) >= s.since
  AND coalesce(p.ts, '9999-12-31'::TIMESTAMP) < s.until
-- Those that the site does not name, of all that a byte can tell: where it names none, no row is compared with any.
ANTI JOIN (
  SELECT unnest(range(256)) AS priority WHERE EXISTS (FROM site_priorities)
  EXCEPT SELECT priority FROM site_priorities
) x ON x.priority = p.priority;

-- Cables, by the names their ends go by; the host map's stand where no log tells. `from_nic` says
-- that the end which tells is a host's. A NIC that a fabric's dump knows by its GUID goes by its own name where the dump
-- has but a label of its port (ibdiagnet's net_dump: B184D0F0/0/0/1, by its place on PCIe).
CREATE OR REPLACE VIEW named_links AS
SELECT l.* REPLACE (
    coalesce(a.device, l.device) AS device,
    coalesce(a.nic || '/' || l.port, l.port) AS port,
    coalesce(b.device, c.device, l.remote_device) AS remote_device,
    coalesce(coalesce(b.nic, c.nic) || '/' || l.remote_port, l.remote_port, b.nic, c.nic) AS remote_port,
    coalesce(l.speed_gbps, l.lanes * l.lane_gbps) AS speed_gbps
  ), a.nic IS NOT NULL AS from_nic
FROM links l
LEFT JOIN device_names a ON a.id = l.device
LEFT JOIN device_names b ON b.id = l.remote_device
LEFT JOIN device_names c ON c.id = l.remote_node AND l.remote_device LIKE 'lid %' AND b.id IS NULL
UNION ALL BY NAME
SELECT DISTINCT h.job, h.file_id, h.line, h.switch AS device, h.switch_port AS port,
  h.host AS remote_device, h.nic AS remote_port, false AS from_nic
FROM host_map h WHERE h.switch IS NOT NULL AND h.switch_port IS NOT NULL;

-- State and rate of ports, by the names they go by; a cable tells both too. The site's rates stand
-- where no log tells.
CREATE OR REPLACE VIEW told_status AS
SELECT s.* REPLACE (
  coalesce(n.device, s.device) AS device,
  coalesce(n.nic || '/' || s.port, s.port) AS port,
  coalesce(s.speed_gbps, s.lanes * s.lane_gbps) AS speed_gbps
)
FROM port_status s LEFT JOIN device_names n ON n.id = s.device
-- An object id of a queue or a priority group is told of `port:number`, which is no port.
WHERE s.alias IS NULL OR NOT regexp_full_match(s.alias, 'oid:0x1[5a][0-9a-f]{12}')
UNION ALL BY NAME
SELECT job, file_id, line, ts, ts_source, device, port, format, speed_gbps, lanes, lane_gbps,
  could_be, oper
FROM named_links
WHERE coalesce(speed_gbps::VARCHAR, oper) IS NOT NULL
UNION ALL BY NAME
SELECT DISTINCT job, file_id, host AS device, nic || '/1' AS port, net_device AS alias FROM host_map
WHERE nic IS NOT NULL AND net_device IS NOT NULL;

CREATE OR REPLACE VIEW named_status AS
FROM told_status
UNION ALL BY NAME
SELECT p.device, p.port, max(r.speed_gbps) AS speed_gbps
FROM (SELECT device, port FROM named_samples UNION SELECT device, port FROM named_links) p
JOIN site_link_rates r ON p.device GLOB r.device AND p.port GLOB r.port
ANTI JOIN (SELECT device, port FROM told_status WHERE speed_gbps IS NOT NULL) t
  ON t.device = p.device AND t.port = p.port
GROUP BY p.device, p.port;
