-- question: Which settings of switches and hosts are known to hurt, or are not those of their peers?
-- A row is a device and a check of `configuration_audit`; what path_mismatch, config_mismatch and nccl_variables tell is
-- left out. ACS and a module hurt where GPUs and NICs exchange data directly, which a job between hosts over RDMA
-- does; that no switch has a watchdog is known where a configuration was read whole. Devices are odd where the share
-- `$most_odd` of those that tell, at most, have another value than the usual one.
WITH rdma AS (
  SELECT host, bool_and(gdr) AS gdr, bool_and(network LIKE 'IB%') AS is_verbs FROM nccl_processes
  WHERE network <> 'Socket' AND nodes IS DISTINCT FROM 1 GROUP BY host
),
acs AS (
  SELECT DISTINCT 'ACS' AS name, 'host' AS type, p.device, NULL::VARCHAR AS switch,
    'ACS redirects what GPUs and NICs exchange' AS said,
    CASE WHEN r.gdr THEN 'low' ELSE 'info' END AS level, 'all of them' AS shown
  FROM configuration_parts p JOIN rdma r ON r.host = p.device
  WHERE p.name = 'ACS' AND p.value = 'on'
),
-- A slot that is as wide on no host is made so.
slots AS (
  SELECT name, device, port, value, count(*) OVER s AS hosts, count(*) FILTER (value = 'full') OVER s AS sound
  FROM configuration_parts WHERE name = 'PCIe width' AND fact = 'LnkSta width'
  WINDOW s AS (PARTITION BY port)
),
narrow AS (
  SELECT name, 'host' AS type, device, NULL::VARCHAR AS switch,
    format('PCIe device {} runs at {} lanes', port, ltrim(value, 'x')) AS said, 'low' AS level, format('full on {} of {} hosts', sound, hosts) AS shown
  FROM slots WHERE value <> 'full' AND nearly_all(sound, hosts, 1 - $most_odd)
),
modules AS (
  SELECT host_name(host) AS host, bool_or(value IN ('nvidia_peermem', 'nv_peer_mem')) AS has_peermem
  FROM hosts WHERE fact = 'module' GROUP BY host_name(host)
),
no_way AS (
  SELECT 'GPUDirect module' AS name, 'host' AS type, r.host AS device, NULL::VARCHAR AS switch,
    'Neither nvidia_peermem nor DMA-BUF is there' AS said, 'low' AS level, 'NCCL and lsmod tell it' AS shown
  FROM rdma r JOIN modules m ON m.host = r.host
  WHERE NOT m.has_peermem AND r.gdr IS NULL AND r.is_verbs
    AND EXISTS (FROM hosts h WHERE h.fact = 'dma_buf' AND host_name(h.host) = r.host AND h.value = 'not available')
    AND NOT EXISTS (FROM hosts h WHERE h.fact = 'dma_buf' AND host_name(h.host) = r.host AND h.value = 'available')
),
watchdogs AS (
  SELECT DISTINCT device FROM settings WHERE regexp_matches(name, '(?i)watch-?dog|pfc_?wd') AND device IS NOT NULL
  UNION SELECT DISTINCT device FROM switch_settings WHERE name = 'watchdog' AND value = 'on'
  UNION SELECT DISTINCT device FROM priority_samples WHERE pfcwd_detected IS NOT NULL
),
protecting AS (
  SELECT p.owner AS device, bool_or(coalesce(c.is_whole, false)) AS is_whole, any_value(c.system) AS system
  FROM protecting_ports p LEFT JOIN configured_systems c ON c.device = p.owner
  WHERE p.classes <> 'none' GROUP BY p.owner
),
unguarded AS (
  SELECT 'PFC watchdog' AS name, 'switch' AS type, NULL::VARCHAR AS device, device AS switch,
    'No watchdog guards a port that pauses' AS said, 'low' AS level, 'no switch has one' AS shown
  FROM protecting
  WHERE is_whole AND system IN ('SONiC', 'EOS', 'NX-OS', 'Cumulus', 'Junos') AND NOT EXISTS (FROM watchdogs)
),
odd_parts AS (
  SELECT p.* FROM configuration_parts p JOIN configuration_compared c
    ON c.name = p.name AND c.role = p.role AND c.fact IS NOT DISTINCT FROM p.fact AND c.usual <> p.value
),
odd AS (
  SELECT c.name, c.role, c.fact, c.usual, c.holders, c.told, any_value(c.odd_devices / c.devices) AS share, p.device, count(*) AS parts,
    string_agg(DISTINCT concat_ws(' ', p.port, p.value), ', ' ORDER BY concat_ws(' ', p.port, p.value)) FILTER (p.place <= 3) AS others
  FROM configuration_compared c
  JOIN configuration_advice a ON a.name = c.name AND a.level = 'info'
  JOIN (SELECT *, row_number() OVER (PARTITION BY name, role, fact, device ORDER BY port, value) AS place FROM odd_parts) p
    ON p.name = c.name AND p.role = c.role AND p.fact IS NOT DISTINCT FROM c.fact
  WHERE c.is_usual AND NOT c.alike AND c.odd_devices <= $most_odd * c.devices
  GROUP BY c.name, c.role, c.fact, c.usual, c.holders, c.told, p.device
),
unlike AS (
  SELECT name, CASE WHEN role = 'hosts' THEN 'host' ELSE 'switch' END AS type,
    CASE WHEN role = 'hosts' THEN device END AS device, CASE WHEN role <> 'hosts' THEN device END AS switch,
    format('{} {}{}, usual {}', fact, others, CASE WHEN parts > 3 THEN format(' and {} more', parts - 3) ELSE '' END, usual) AS said,
    'info' AS level, format('{} of {} have the usual value', holders, told) AS shown, share
  FROM odd
),
told AS (
  FROM acs UNION ALL BY NAME FROM narrow UNION ALL BY NAME FROM no_way UNION ALL BY NAME FROM unguarded
  UNION ALL BY NAME FROM unlike
)
SELECT t.name, t.type, t.device AS host, t.switch, t.said, t.shown, t.share, t.level, c.why,
  coalesce(a.first_step, 'Compare with a neighbour, and set it as there.') AS first_step,
  a.source
FROM told t
JOIN configuration_checks c USING (name)
JOIN configuration_advice a USING (name)
ORDER BY t.name, t.level DESC, t.type, host, t.switch, t.said
