-- What switches and hosts are set to, as last told: a row is a setting (`fact`) of a check, on a device or a port of it.
-- `role` is among whom it is compared: training hosts, or switches called alike.
CREATE OR REPLACE VIEW configuration_parts AS
WITH states AS (
  SELECT device, port, max(speed_gbps) AS speed_gbps, bool_or(link_layer = 'InfiniBand') AS is_infiniband,
    arg_max(oper, coalesce(ts, '1970-01-01'::TIMESTAMP)) AS oper
  FROM named_status GROUP BY device, port
),
mtus AS (
  SELECT device, port, value, ts FROM switch_settings WHERE name = 'mtu'
  UNION ALL
  SELECT device, port, mtu::VARCHAR, ts FROM named_status WHERE mtu > 0
),
port_mtus AS (
  SELECT m.device, m.port, m.value, m.ts,
    CASE WHEN n.nic IS NOT NULL THEN CASE WHEN s.is_infiniband THEN 'InfiniBand ports' ELSE 'RDMA ports' END
        || coalesce(format(' of {:.0f} Gb/s', greatest(s.speed_gbps, d.speed_gbps)), '')
      WHEN m.port IS NULL THEN 'MTU'
      WHEN regexp_matches(m.port, '^(ma|mgmt|management|vlan|loopback|lo|port-?channel|po|ae|irb|bundle|tunnel|nve)[0-9]', 'i')
        THEN 'ports ' || regexp_replace(m.port, '[0-9]+', '#', 'g')
      WHEN regexp_matches(m.port, '[A-Z/-]|^(swp|etp)?[0-9]') THEN 'MTU'
      WHEN s.speed_gbps > 0 THEN format('other ports of {:.0f} Gb/s', s.speed_gbps)
      -- The first of them is often that by which a host is managed.
      WHEN m.port = 'eth0' THEN 'ports eth0'
      ELSE 'ports ' || regexp_replace(m.port, '[0-9]+', '#', 'g') END AS fact
  FROM mtus m
  LEFT JOIN states s USING (device, port)
  LEFT JOIN nic_names n ON n.host = host_name(m.device) AND n.name = m.port
  LEFT JOIN states d ON host_name(d.device) = n.host AND d.port = n.nic || '/1'
  WHERE coalesce(s.oper, d.oper) IS DISTINCT FROM 'down'
),
told AS (
  SELECT CASE WHEN name = 'lossless_priorities' THEN 'PFC priorities of switch ports'
      WHEN name IN ('watchdog', 'ACTION', 'DETECTION TIME', 'RESTORATION TIME', 'pfcwd polling interval', 'watchdog polls') THEN 'PFC watchdog'
      WHEN format LIKE 'sonic_switch_hash%' OR profile IN ('ECMP', 'LAG') THEN 'hash fields'
      WHEN regexp_matches(name, '_threshold|^ecn$|probability|^wred_') THEN 'ECN thresholds'
      WHEN name = 'trust' THEN 'trust of switch ports'
      WHEN name LIKE 'DSCP %' THEN 'DSCP maps'
      WHEN name LIKE 'adaptive_routing%' THEN 'adaptive routing'
      WHEN regexp_matches(name, '^(service-profile|RoCE mode|(qos|queuing) policy|(pfc|ecn|mapping) profile)$') THEN 'QoS policies of switch ports'
      WHEN profile <> 'route' OR name = 'mmu queue profile' THEN 'buffer profiles' END AS name,
    device, port, concat_ws(' ', profile, CASE WHEN name <> 'hash_field' THEN name END) AS fact, value, ts
  FROM switch_settings WHERE name <> 'mtu'
  UNION ALL
  SELECT CASE WHEN fact = 'PFC enabled by priority' THEN 'PFC priorities of hosts' WHEN fact = 'trust' THEN 'trust of hosts'
      WHEN fact = 'dma_buf' THEN 'GPUDirect module'
      WHEN fact = 'ACSCtl' THEN 'ACS' WHEN fact = 'RlxdOrd' THEN 'relaxed ordering'
      WHEN fact = 'MaxReadReq' THEN 'PCIe read size' WHEN fact = 'LnkSta width' THEN 'PCIe width'
      WHEN fact IN ('traffic_class', 'default_roce_tos') OR fact LIKE 'prio:%' THEN 'DSCP maps'
      WHEN regexp_matches(fact, '(?i)fw_ver|firmware') THEN 'firmware'
      WHEN fact = 'kernel_version' THEN 'kernel'
      WHEN regexp_matches(fact, '(?i)driver') THEN 'drivers' END,
    host, CASE WHEN part LIKE 'PS%' THEN NULL ELSE part END, CASE WHEN fact = 'dma_buf' THEN 'DMA-BUF' ELSE fact END,
    -- A bridge redirects where any of these is set.
    CASE WHEN fact <> 'ACSCtl' THEN value WHEN regexp_matches(value, '(SrcValid|ReqRedir|CmpltRedir|UpstreamFwd)\+') THEN 'on' ELSE 'off' END, ts
  FROM hosts
  -- Parameters of the IOMMU alone: the rest names disks.
  UNION ALL SELECT 'IOMMU', host, NULL, 'kernel parameters',
    coalesce(nullif(array_to_string(list_sort(regexp_extract_all(value, '\S*iommu\S*')), ' '), ''), 'not set'), ts
  FROM hosts WHERE fact = 'kernel command line'
  UNION ALL SELECT 'MTU', device, port, fact, value, ts FROM port_mtus
  UNION ALL SELECT 'FEC', device, port, 'FEC', fec, ts FROM named_status WHERE oper IS DISTINCT FROM 'down'
  UNION ALL SELECT 'firmware', device, NULL, 'module ' || coalesce(vendor || ' ', '') || part_number, firmware, ts FROM optics WHERE part_number IS NOT NULL
  -- A host whose modules were read, and that has none of these, is told too; so is a variable that only others set.
  UNION ALL SELECT 'GPUDirect module', host, NULL, 'nvidia_peermem',
    CASE WHEN bool_or(value IN ('nvidia_peermem', 'nv_peer_mem')) THEN 'loaded' ELSE 'not loaded' END, NULL
  FROM hosts WHERE fact = 'module' GROUP BY host
  UNION ALL SELECT CASE n.name WHEN 'NCCL_IB_ADAPTIVE_ROUTING' THEN 'adaptive routing' WHEN 'NCCL_IB_PCI_RELAXED_ORDERING' THEN 'relaxed ordering' ELSE 'NCCL variables' END,
    h.host, NULL, n.name, coalesce(v.value, 'unset'), NULL
  FROM (SELECT DISTINCT host FROM nccl_env) h
  CROSS JOIN (SELECT DISTINCT name FROM nccl_env WHERE NOT regexp_matches(name, 'FILE|HOSTID|COMM_ID|DUMP|PORT')) n
  LEFT JOIN (SELECT DISTINCT host, name, value FROM nccl_env) v ON v.host = h.host AND v.name = n.name
  UNION ALL SELECT 'NCCL version', host, NULL, 'version', version, NULL FROM nccl_ranks
  UNION ALL SELECT 'PCIe width', host, part, 'PCIe', text, ts FROM events WHERE kind = 'pcie_degraded'
),
last_told AS (
  SELECT name, host_name(device) AS device, port, fact, value FROM told
  WHERE name IS NOT NULL AND value IS NOT NULL AND device IS NOT NULL
  QUALIFY ts IS NOT DISTINCT FROM max(ts) OVER (PARTITION BY name, device, port, fact)
),
named_parts AS (
  SELECT name, fact, device, port, string_agg(DISTINCT value, ', ' ORDER BY value) AS value,
    CASE WHEN device IN (SELECT host FROM training_hosts) THEN 'hosts'
      ELSE regexp_replace(device, '^0x[0-9a-f]+$|\d+', '#', 'g') END AS role
  FROM last_told GROUP BY name, fact, device, port
),
-- Values of DSCP that all switches called alike map as they map another are one line.
maps AS (
  SELECT role, fact, string_agg(concat_ws(' ', device, value), '; ' ORDER BY device) AS said
  FROM named_parts WHERE fact LIKE 'DSCP %' GROUP BY role, fact
),
mapped AS (
  SELECT role, fact, 'DSCP ' || string_agg(fact[6:], ',' ORDER BY try_cast(fact[6:] AS INT)) OVER (PARTITION BY role, said
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS facts
  FROM maps
)
SELECT DISTINCT p.name, coalesce(m.facts, p.fact) AS fact, p.device, p.port, p.value, p.role
FROM named_parts p LEFT JOIN mapped m USING (role, fact);

-- The usual value of each setting, which three quarters of at least three have, and the others. `odd_devices` of the
-- `devices` that tell have another value.
CREATE OR REPLACE VIEW configuration_compared AS
WITH counted AS (
  SELECT name, role, fact, value, count(*) AS holders, sum(count(*)) OVER g AS told,
    row_number() OVER (PARTITION BY name, role, fact ORDER BY count(*) DESC, value) AS place
  FROM configuration_parts GROUP BY name, role, fact, value WINDOW g AS (PARTITION BY name, role, fact)
),
usual AS (
  SELECT name, role, fact, value AS usual, holders, told::BIGINT AS told,
    told >= 3 AND 4 * holders >= 3 * told AS is_usual, holders = told AS alike
  FROM counted WHERE place = 1
)
SELECT u.name, u.role, u.fact, u.usual, u.holders, u.told, u.is_usual, u.alike, count(DISTINCT p.device) AS devices,
  count(DISTINCT p.device) FILTER (p.value <> u.usual) AS odd_devices,
  list_distinct(list(p.device ORDER BY p.device) FILTER (p.value <> u.usual)) AS odd,
  array_to_string(list(format('{}: {}', concat_ws(' ', p.device, p.port), p.value) ORDER BY p.device, p.port) FILTER (p.value <> u.usual)[:5], '; ') AS odd_values
FROM usual u JOIN configuration_parts p ON p.name = u.name AND p.role = u.role AND p.fact IS NOT DISTINCT FROM u.fact
GROUP BY u.name, u.role, u.fact, u.usual, u.holders, u.told, u.is_usual, u.alike;
