-- All names of a port: what counters, LLDP and status commands call it, and the one it goes by.
CREATE OR REPLACE VIEW port_names AS
SELECT DISTINCT device, port, alias AS name
FROM named_status WHERE alias IS NOT NULL
UNION
SELECT DISTINCT device, port, port AS name FROM named_status WHERE port IS NOT NULL;

-- The rate of each port, the highest that a source tells.
CREATE OR REPLACE VIEW told_speeds AS
SELECT device, port, max(speed_gbps) AS speed_gbps FROM named_status GROUP BY device, port;

-- Ports with counters, as they call them. A table: small, and asked by several below.
CREATE OR REPLACE TABLE counting_ports AS
SELECT device, port FROM named_samples UNION SELECT device, port FROM named_priority_samples;

-- Known hosts: whatever trains. Where no log tells of a job, the neighbours of switches that call all their ports as an
-- operating system calls NICs, or by MAC address. Those that count have names that no switch has (eth0 is the port by
-- which switches are managed), or count ports of such names alone. A table like those below: small, and asked by nearly
-- every view.
CREATE OR REPLACE TABLE training_hosts AS
WITH trains AS (
  SELECT DISTINCT host_name(host) AS host FROM job_ranks WHERE host IS NOT NULL
  UNION
  -- What lines without a communicator are of, in logs that were cut.
  SELECT DISTINCT host_name(host) FROM nccl_processes WHERE host IS NOT NULL
  UNION
  SELECT host FROM other_hosts
),
-- What counts ports, and whether one is called as those of switches are: Ethernet1/1, et-0/0/1, swp1, 1; eth0 alone
-- may be the port by which a switch is managed. `as_host`: all are called as an operating system calls NICs.
counts AS (
  SELECT host_name(device) AS device, bool_or(regexp_matches(port, '[A-Z/-]|^(swp|etp)?[0-9]')) OR bool_and(port = 'eth0')
    AS as_switch, bool_and(is_rdma_device(port) OR regexp_matches(port, '^(en[ops]|eth|ib|hsn|rdma|roce|irdma)[a-z]*[0-9][^/]*$'))
    AND NOT bool_and(port = 'eth0') AS as_host
  FROM counting_ports WHERE device IS NOT NULL GROUP BY host_name(device)
)
FROM trains
UNION
-- Where no log tells of a job, what counts RDMA devices is a host, and what counts NICs alone.
SELECT host_name(device) FROM counting_ports WHERE is_rdma_device(port) AND NOT EXISTS (FROM trains)
UNION
SELECT device FROM counts WHERE as_host AND NOT EXISTS (FROM trains)
UNION
SELECT host_name(remote_device) FROM named_links
WHERE NOT from_nic AND NOT EXISTS (FROM trains)
  AND remote_device NOT IN (SELECT device FROM named_links WHERE NOT from_nic AND device IS NOT NULL)
GROUP BY host_name(remote_device)
HAVING bool_and(coalesce(
  regexp_matches(
    coalesce(remote_port_description, remote_port),
    CASE WHEN host_name(remote_device) IN (SELECT device FROM counts WHERE as_switch)
      THEN '^(en[ops]|mlx|hsn|rdma|roce|irdma|bnxt_|ionic_|efa_|cxi)[a-z]*[0-9][^/]*$'
      ELSE '^((en|eth|ib|mlx|hsn|bond|rdma|roce|irdma|bnxt_|ionic_|efa_|cxi)[a-z]*[0-9]|([0-9a-f]{2}:){5})'
    END
  ),
  false
));

-- Those, and hosts that do not train: called like them, as are all ports that they count.
CREATE OR REPLACE TABLE known_hosts AS
WITH counted AS (
  SELECT host_name(device) AS host, regexp_replace(port, '\d+', '#', 'g') AS ports
  FROM counting_ports WHERE device IS NOT NULL
)
FROM training_hosts
UNION
SELECT host FROM counted
WHERE host_look(host) IN (SELECT host_look(host) FROM training_hosts)
GROUP BY host
HAVING bool_and(ports IN (SELECT ports FROM counted SEMI JOIN training_hosts USING (host)));

-- The one name of a switch port for each name it is called by. A second name that is the first of
-- another port, or that two ports share, names none.
CREATE OR REPLACE TABLE port_aliases AS
SELECT host_name(device) AS device, name, any_value(port) AS port
FROM port_names
WHERE host_name(device) NOT IN (FROM known_hosts)
  AND (name = port OR (device, name) NOT IN (
    SELECT device, port FROM named_status WHERE device IS NOT NULL AND port IS NOT NULL
  ))
GROUP BY host_name(device), name
HAVING count(DISTINCT port) = 1;

-- What each source says of each cable, with the ports of switches under their one name: LLDP tells the
-- alias or the description of a neighbour's port, and its whole name where other sources print the
-- short one. `planned` are cables of maps that people write. `stale` is a cable one end of which was
-- seen with another peer more than an hour later (reading all devices of a site may take that long),
-- and a planned one that a device contradicts.
CREATE OR REPLACE TABLE stated_links AS
WITH known AS (
  SELECT host_name(device) AS short, any_value(device) AS device
  FROM (
    SELECT device FROM named_status UNION SELECT device FROM named_links
    UNION SELECT device FROM named_samples
  )
  GROUP BY host_name(device) HAVING count(DISTINCT device) = 1
),
canonical AS (
  SELECT l.* REPLACE (
    coalesce(a.port, l.port) AS port, coalesce(k.device, l.remote_device) AS remote_device,
    coalesce(r.port, d.port, l.remote_port) AS remote_port
  ), coalesce(l.format IN ('cable_map_csv', 'site_map'), true) AS planned
  FROM named_links l
  LEFT JOIN known k ON k.short = host_name(l.remote_device)
  LEFT JOIN port_aliases a ON a.device = host_name(l.device) AND a.name = l.port
  LEFT JOIN port_aliases r ON r.device = host_name(l.remote_device) AND r.name = l.remote_port
  LEFT JOIN port_aliases d ON d.device = host_name(l.remote_device)
    AND d.name = l.remote_port_description
),
-- The peer of each end: a device, and its port where one source names both at one end (`source`).
ends AS (
  SELECT '' AS source, host_name(device) AS device, port, host_name(remote_device) AS peer, ts, planned
  FROM canonical
  UNION ALL
  SELECT '', host_name(remote_device), remote_port, host_name(device), ts, planned FROM canonical
  UNION ALL
  SELECT format, host_name(device), port, host_name(remote_device) || ' ' || remote_port, ts, planned
  FROM canonical WHERE NOT planned
),
peers AS (
  SELECT source, device, port, peer, max(ts) FILTER (NOT planned) AS last_seen,
    bool_and(planned) AS only_planned
  FROM ends WHERE device IS NOT NULL AND port IS NOT NULL AND peer NOT LIKE 'unknown:%'
  GROUP BY source, device, port, peer
),
gone AS (
  SELECT source, device, port, peer FROM peers
  WINDOW p AS (PARTITION BY source, device, port)
  QUALIFY last_seen < max(last_seen) OVER p - INTERVAL 1 HOUR
    OR (only_planned AND NOT bool_and(only_planned) OVER p)
)
SELECT l.*, g.peer IS NOT NULL OR f.peer IS NOT NULL OR s.peer IS NOT NULL AS stale
FROM canonical l
LEFT JOIN gone g ON g.source = '' AND g.device = host_name(l.device) AND g.port = l.port
  AND g.peer = host_name(l.remote_device)
LEFT JOIN gone f ON f.source = '' AND f.device = host_name(l.remote_device)
  AND f.port = l.remote_port AND f.peer = host_name(l.device)
LEFT JOIN gone s ON s.source = l.format AND s.device = host_name(l.device) AND s.port = l.port
  AND s.peer = host_name(l.remote_device) || ' ' || l.remote_port;

-- Cables as they are now.
CREATE OR REPLACE VIEW canonical_links AS SELECT * FROM stated_links WHERE NOT stale;

-- Equal-cost links of one device: ports with counters whose other end is a switch. A device is one
-- if it tells LLDP neighbours or counters itself, or if two of the asked devices reach it (any one
-- does where only one was asked), unless it is called like the training hosts (node07 like node01):
-- that is a host whose logs are missing. Ports by which switches are managed, some of which count, lead to no fabric.
-- A switch with hosts below it has one group, its uplinks; one without (a spine) has a group for
-- every switch it reaches, its parallel links to that switch.
CREATE OR REPLACE TABLE uplink_groups AS
WITH ends AS (
  SELECT device, port, remote_device, remote_port, ts FROM canonical_links WHERE NOT from_nic
  UNION ALL
  -- The other end of a cable between switches, where only one of them was asked.
  SELECT remote_device, remote_port, device, port, ts FROM canonical_links
  WHERE remote_port IS NOT NULL AND host_name(remote_device) NOT IN (FROM known_hosts)
),
cables AS (
  SELECT device, port, arg_max(remote_device, coalesce(ts, '1970-01-01'::TIMESTAMP)) AS remote_device,
    bool_or(regexp_matches(lower(concat_ws(' ', port, remote_port)),
      '(^| )(eth0|ma[0-9]|management|mgmt|me[0-9]|em[0-9]|fxp[0-9]|oob)')) AS manages
  FROM ends
  WHERE remote_device IS NOT NULL
  GROUP BY device, port
),
host_patterns AS (
  SELECT DISTINCT host_look(host) AS pattern FROM training_hosts
),
switches AS (
  SELECT device FROM (
    SELECT device FROM named_links WHERE NOT from_nic
    UNION SELECT device FROM named_samples
  )
  -- What the fabric knows as a host's, or has RDMA devices, even one that does not train.
  WHERE host_name(device) NOT IN (FROM known_hosts)
    AND device NOT IN (SELECT device FROM device_names WHERE nic IS NOT NULL)
    AND device NOT IN (
      SELECT device FROM named_status
      WHERE device IS NOT NULL AND regexp_matches(port, '^[a-z][a-z0-9_]*/\d+$')
    )
  UNION
  SELECT remote_device FROM named_links
  WHERE host_look(host_name(remote_device)) NOT IN (FROM host_patterns)
    AND remote_device NOT IN (SELECT device FROM device_names WHERE nic IS NOT NULL)
  GROUP BY remote_device
  HAVING count(DISTINCT device) >= least(2, (
    SELECT count(DISTINCT device) FROM named_links WHERE NOT from_nic
  ))
),
counted AS (
  SELECT c.device, coalesce(a.port, c.port) AS port
  FROM counting_ports c
  LEFT JOIN port_aliases a ON a.device = host_name(c.device) AND a.name = c.port
),
-- Hosts below a leaf are called like those that train: not all of them may have left logs.
leaves AS (
  SELECT DISTINCT c.device FROM cables c SEMI JOIN training_hosts t
    ON host_name(c.remote_device) = t.host
  UNION
  SELECT DISTINCT c.device FROM cables c SEMI JOIN host_patterns t
    ON host_look(host_name(c.remote_device)) = t.pattern
  ANTI JOIN switches s ON s.device = c.remote_device
),
-- Where hosts tell no neighbours and no switch tells them: a leaf has ports without a known cable that carry
-- traffic, and the switches it reaches have none. Ports that carry next to nothing are unused.
carrying AS (
  SELECT n.device, coalesce(a.port, n.port) AS port, max(coalesce(n.tx_bytes, n.tx_packets))
    - min(coalesce(n.tx_bytes, n.tx_packets)) AS sent
  FROM named_samples n SEMI JOIN cables c ON c.device = n.device
  LEFT JOIN port_aliases a ON a.device = host_name(n.device) AND a.name = n.port
  WHERE NOT EXISTS (FROM leaves)
  GROUP BY n.device, coalesce(a.port, n.port)
  QUALIFY sent > 0.001 * max(sent) OVER (PARTITION BY n.device)
),
uncabled AS (
  SELECT p.device FROM carrying p ANTI JOIN cables c ON c.device = p.device AND c.port = p.port
  GROUP BY p.device HAVING count(*) >= 2
),
all_leaves AS (
  FROM leaves
  UNION ALL
  SELECT device FROM uncabled
  WHERE device NOT IN (
    SELECT c.device FROM cables c SEMI JOIN uncabled u ON u.device = c.remote_device WHERE c.device IS NOT NULL
  )
),
between_switches AS (
  SELECT c.* EXCLUDE (manages), l.device IS NOT NULL AS is_leaf
  FROM cables c ANTI JOIN training_hosts t ON host_name(c.remote_device) = t.host
  -- A host that tells its own neighbours has no uplinks.
  ANTI JOIN training_hosts h ON host_name(c.device) = h.host
  SEMI JOIN switches s ON s.device = c.remote_device
  SEMI JOIN switches o ON o.device = c.device
  SEMI JOIN counted n ON n.device = c.device AND n.port = c.port
  LEFT JOIN all_leaves l ON l.device = c.device
  WHERE NOT c.manages
)
SELECT b.device, b.port, b.remote_device, s.speed_gbps,
  CASE WHEN is_leaf THEN b.device || ' uplinks' ELSE b.device || ' to ' || b.remote_device END
    AS uplink_group,
  count(*) OVER (
    PARTITION BY b.device, CASE WHEN is_leaf THEN '' ELSE b.remote_device END
  ) AS members
FROM between_switches b LEFT JOIN told_speeds s USING (device, port)
WHERE EXISTS (SELECT 1 FROM training_hosts);

-- Which NIC a GPU of a host uses, where no NCCL log tells: the host map's word, else the one NIC
-- nearest to it on PCIe by `nvidia-smi topo -m`.
CREATE OR REPLACE VIEW gpu_nics AS
WITH distances AS (
  SELECT host_name(host) AS host, regexp_extract(part, '^GPU(\d+)$', 1)::BIGINT AS gpu, fact AS nic,
    list_position(['PIX', 'PXB', 'PHB', 'NODE', 'SYS'], any_value(value)) AS distance
  FROM hosts
  WHERE regexp_matches(part, '^GPU\d+$') AND NOT regexp_matches(fact, '^GPU\d|Affinity|NUMA')
  GROUP BY ALL
),
nearest AS (
  SELECT host, gpu, any_value(nic) AS nic
  FROM (
    SELECT * FROM distances WHERE distance IS NOT NULL
    QUALIFY distance = min(distance) OVER (PARTITION BY host, gpu)
  )
  GROUP BY host, gpu
  HAVING count(*) = 1
),
legend AS (
  SELECT DISTINCT host_name(host) AS host, part, value AS device FROM hosts WHERE fact = 'device'
),
mapped AS (
  SELECT host_name(host) AS host, gpu, any_value(nic) AS nic FROM host_map
  WHERE gpu IS NOT NULL AND nic IS NOT NULL
  GROUP BY ALL
  HAVING count(DISTINCT nic) = 1
)
SELECT host, gpu, nic FROM mapped
UNION ALL
SELECT n.host, n.gpu, coalesce(l.device, n.nic)
FROM nearest n LEFT JOIN legend l ON l.host = n.host AND l.part = n.nic
ANTI JOIN mapped m ON m.host = n.host AND m.gpu = n.gpu;

-- The NIC each rank sends through, by its NET connections: rank -> host -> GPU -> NIC -> leaf port. A process of one
-- GPU whose rank no log tells (only communicators of parts of the job are shown) has a row, too.
-- Of a rank that sends through another one's NIC (PXN), the NIC it receives through or lends to others: `sends` is
-- false then.
-- Connections by sockets count only where a job has no others: elsewhere the other end asked for them.
-- Without NCCL logs the NIC nearest to its GPU is taken; `connections` is null then.
CREATE OR REPLACE VIEW rank_paths AS
WITH net_channels AS (
  FROM channels_by_rank WHERE transport = 'NET'
  QUALIFY network IS DISTINCT FROM 'Socket' OR NOT bool_or(network <> 'Socket') OVER (PARTITION BY job)
),
used AS (
  SELECT job, place, nic_index, NOT aside AS sends, count(*) AS connections
  FROM (
    SELECT job, job_rank::VARCHAR AS place, nic_index, side <> 'send' AS aside FROM net_channels
    WHERE proxy_rank IS NULL AND rank_source = 'communicator'
    UNION ALL
    SELECT job, host || ' ' || pid, nic_index, side <> 'send' FROM net_channels
    WHERE proxy_rank IS NULL AND job_rank IS NULL
    WINDOW p AS (PARTITION BY job, host, pid)
    QUALIFY min(cuda_device) OVER p IS NOT DISTINCT FROM max(cuda_device) OVER p
    UNION ALL
    SELECT c.job, r.rank::VARCHAR, c.nic_index, true
    FROM net_channels c
    JOIN job_ranks r ON r.job IS NOT DISTINCT FROM c.job AND r.host = c.host AND r.rank = c.proxy_rank
  )
  GROUP BY job, place, nic_index, aside
  QUALIFY aside = min(aside) OVER (PARTITION BY job, place)
),
named AS (
  SELECT job, host, pid, nic_index, max(nic) AS nic, max(nic_port) AS nic_port
  FROM nccl_nics WHERE plugin IS DISTINCT FROM 'Socket' AND nic IS NOT NULL
  GROUP BY job, host, pid, nic_index
),
ranks_and_nics AS (
  SELECT r.job, r.rank, r.host, r.gpu, coalesce(n.nic, g.nic) AS nic,
    coalesce(n.nic, g.nic) || '/' || coalesce(n.nic_port, 1) AS nic_port, u.connections, u.sends
  FROM job_ranks r
  LEFT JOIN used u ON u.job IS NOT DISTINCT FROM r.job
    AND u.place = coalesce(r.rank::VARCHAR, r.host || ' ' || r.pid)
  LEFT JOIN named n ON n.job IS NOT DISTINCT FROM u.job AND n.host = r.host AND n.pid = r.pid
    AND n.nic_index = u.nic_index
  -- A rank may send through no NIC at all: where NCCL tells of others, nothing is guessed for it.
  LEFT JOIN gpu_nics g ON g.host = r.host AND g.gpu = r.gpu
    AND NOT EXISTS (SELECT 1 FROM used o WHERE o.job IS NOT DISTINCT FROM r.job)
)
SELECT DISTINCT r.job, r.rank, r.host, r.gpu, r.nic, r.connections, r.sends,
  a.alias AS net_device, l.device AS leaf, l.port AS leaf_port
FROM ranks_and_nics r
LEFT JOIN (SELECT DISTINCT device, port, alias FROM named_status WHERE alias IS NOT NULL) a
  ON host_name(a.device) = r.host AND a.port = r.nic_port
LEFT JOIN (
  SELECT device, port, remote_device, remote_port, remote_port_description FROM canonical_links
  UNION
  -- As the host tells it (lldpctl).
  SELECT remote_device, remote_port, device, port, NULL FROM canonical_links
) l ON host_name(l.remote_device) = r.host
  AND (l.remote_port IN (a.alias, r.nic, r.nic_port) OR l.remote_port_description IN (a.alias, r.nic));
