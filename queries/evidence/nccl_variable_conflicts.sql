-- question: Which variables of NCCL contradict each other, or what their hosts have?
-- A row is a host, or the job where more than the share `$most_hosts` of its hosts that print variables are alike, and
-- one of `nccl_variable_checks`. What a host does not tell (its devices, NVLink, the classes of its traffic)
-- contradicts nothing. `host_variables` has what each host set, the same in all its processes.
WITH set_values AS (
  SELECT job, host_name(host) AS host, name, any_value(value) AS value
  -- The word `none` is read as null.
  FROM (SELECT job, host, name, coalesce(trim(regexp_replace(value, '\.$', '')), 'none') AS value FROM nccl_env)
  WHERE name LIKE 'NCCL_%' AND host IS NOT NULL
  GROUP BY job, host_name(host), name HAVING count(DISTINCT value) = 1
),
host_variables AS (
  SELECT job, host, map_from_entries(list({'name': name, 'value': value} ORDER BY name)) AS v FROM set_values GROUP BY job, host
),
-- What NCCL says of each host.
chosen AS (
  SELECT job, host_name(host) AS host, max(nvls_channels) AS nvls, max(local_ranks) AS local_ranks, max(nodes) AS nodes,
    max(try_cast(regexp_extract(version, '^2\.(\d+)', 1) AS INT)) AS minor
  FROM nccl_ranks WHERE host IS NOT NULL GROUP BY job, host_name(host)
),
networks AS (
  SELECT job, host, list(DISTINCT network) AS networks FROM nccl_processes WHERE network IS NOT NULL GROUP BY job, host
),
listed AS (
  SELECT job, host_name(host) AS host, bool_or(link_layer = 'RoCE') AS has_roce,
    list(DISTINCT nic) FILTER (plugin IS DISTINCT FROM 'Socket' AND nic_port IS NOT NULL) AS nics
  FROM nccl_nics WHERE host IS NOT NULL GROUP BY job, host_name(host)
),
-- Its devices and interfaces, by tools that list all of them.
devices AS (
  SELECT host_name(device) AS host, list(DISTINCT split_part(port, '/', 1)) AS devices
  FROM named_status WHERE is_rdma_device(port) GROUP BY host_name(device)
),
interfaces AS (
  SELECT host_name(device) AS host, list(DISTINCT port) AS interfaces FROM port_status WHERE format = 'ip_link' GROUP BY host_name(device)
),
-- Hosts whose GPUs are joined by NVLink.
linked AS (
  SELECT host_name(host) AS host FROM hosts WHERE part LIKE 'GPU%' AND fact LIKE 'GPU%' AND regexp_full_match(value, 'NV\d+')
  UNION SELECT host_name(host) FROM hosts WHERE fact = 'nvls' AND value = 'available'
  UNION SELECT host_name(host) FROM nccl_paths WHERE path_type = 'NVL' AND from_device LIKE 'GPU%' AND to_device LIKE 'GPU%'
  UNION SELECT host_name(g.host) FROM gpu_samples g JOIN expected_nvlink n ON regexp_matches(g.model, n.gpu)
),
-- Hosts whose NVSwitch reduces: by NCCL's word, or by the model of their GPUs.
reducing AS (
  SELECT host_name(host) AS host FROM hosts WHERE fact = 'nvls' AND value = 'available'
  UNION SELECT host_name(g.host) FROM gpu_samples g JOIN nccl_algorithm_needs n ON n.algorithm = 'NVLS' AND regexp_matches(g.model, n.gpu)
),
modules AS (
  SELECT host_name(host) AS host, bool_or(value IN ('nvidia_peermem', 'nv_peer_mem')) AS has_peermem
  FROM hosts WHERE fact = 'module' GROUP BY host_name(host)
),
-- Indices of addresses that are of RoCE v1 on all NICs of a host, and of v2 on none.
old_addresses AS (
  SELECT host_name(host) AS host, list(DISTINCT value) AS old_indices
  FROM (
    SELECT host, value, fact FROM hosts WHERE fact IN ('RoCE v1 GID index', 'RoCE v2 GID index')
    QUALIFY count(*) FILTER (fact = 'RoCE v2 GID index') OVER (PARTITION BY host_name(host), value) = 0
  ) GROUP BY host_name(host)
),
-- The class of each DSCP, and the classes that are protected, as the host says itself. A class that a NIC
-- is told to use for all connections (traffic_class) counts more than NCCL's.
host_maps AS (
  SELECT host_name(host) AS host, fact[6:] AS class, unnest(regexp_extract_all(value, '\d+'))::INT AS dscp
  FROM hosts WHERE regexp_full_match(fact, 'prio:\d')
),
host_classes AS (
  SELECT host, dscp, any_value(class) AS class FROM host_maps GROUP BY host, dscp HAVING count(DISTINCT class) = 1
),
host_protected AS (
  SELECT host_name(host) AS host, any_value(value) AS classes
  FROM (
    SELECT host, array_to_string([i - 1 FOR b, i IN regexp_extract_all(value, '[01]') IF b = '1'], ',') AS value
    FROM hosts WHERE fact = 'PFC enabled by priority' AND NOT contains(value, ':')
  ) GROUP BY host_name(host) HAVING count(DISTINCT value) = 1
),
trusts AS (
  SELECT host_name(host) AS host, any_value(lower(value)) AS trust FROM hosts WHERE fact = 'trust'
  GROUP BY host_name(host) HAVING count(DISTINCT lower(value)) = 1
),
told_classes AS (SELECT DISTINCT host_name(host) AS host FROM hosts WHERE fact IN ('traffic_class', 'default_roce_tos')),
-- The classes of switches count where all that tell them agree.
switch_classes AS (
  SELECT try_cast(name[6:] AS INT) AS dscp, any_value(value) AS class FROM switch_settings
  WHERE name LIKE 'DSCP %' AND regexp_full_match(value, '\d') GROUP BY 1 HAVING count(DISTINCT value) = 1
),
switch_protected AS (
  SELECT any_value(classes) AS classes FROM protecting_ports WHERE classes <> 'none' HAVING count(DISTINCT classes) = 1
),
known AS (
  SELECT h.job, h.host, h.v, c.nvls, c.local_ranks, c.nodes, c.minor, n.networks, l.has_roce, l.nics, d.devices, i.interfaces,
    k.host IS NOT NULL AS has_nvlink, r.host IS NOT NULL AS has_nvls, m.has_peermem, t.trust, a.old_indices,
    upper(h.v['NCCL_P2P_DISABLE']) = '1' OR upper(h.v['NCCL_P2P_LEVEL']) IN ('LOC', '0') AS no_p2p,
    CASE WHEN o.host IS NULL AND l.has_roce THEN try_cast(h.v['NCCL_IB_TC'] AS INT) // 4 END AS dscp
  FROM host_variables h
  LEFT JOIN chosen c ON c.job IS NOT DISTINCT FROM h.job AND c.host = h.host
  LEFT JOIN networks n ON n.job IS NOT DISTINCT FROM h.job AND n.host = h.host
  LEFT JOIN listed l ON l.job IS NOT DISTINCT FROM h.job AND l.host = h.host
  LEFT JOIN devices d ON d.host = h.host LEFT JOIN interfaces i ON i.host = h.host
  LEFT JOIN linked k ON k.host = h.host LEFT JOIN reducing r ON r.host = h.host LEFT JOIN modules m ON m.host = h.host
  LEFT JOIN old_addresses a ON a.host = h.host
  LEFT JOIN trusts t ON t.host = h.host LEFT JOIN told_classes o ON o.host = h.host
),
classed AS (
  SELECT k.*, c.class, p.classes, s.class AS switch_class, w.classes AS switch_classes,
    coalesce(NOT list_contains(string_split(p.classes, ','), c.class), false) AS host_drops,
    coalesce(NOT list_contains(string_split(w.classes, ','), s.class), false) AS switch_drops,
    [name FOR name IN named_devices(v['NCCL_IB_HCA']) IF len([1 FOR d IN coalesce(devices, []) IF is_named(d, name)]) = 0] AS absent,
    [name FOR name IN named_devices(v['NCCL_IB_HCA']) IF len([1 FOR d IN coalesce(nics, []) IF is_named(d, name)]) = 0] AS unused,
    [name FOR name IN named_devices(v['NCCL_SOCKET_IFNAME']) IF len([1 FOR d IN coalesce(interfaces, []) IF is_named(d, name)]) = 0] AS no_interface,
    greatest(try_cast(v['NCCL_MIN_NCHANNELS'] AS INT), try_cast(v['NCCL_MIN_CTAS'] AS INT)) AS fewest,
    least(try_cast(v['NCCL_MAX_NCHANNELS'] AS INT), try_cast(v['NCCL_MAX_CTAS'] AS INT)) AS most,
    [a FOR a IN asked_lists(v['NCCL_ALGO']) IF NOT list_has_any(string_split(a, ','), ['ring', 'nvls', 'pat', 'collnetdirect'])] AS no_gather
  FROM known k
  LEFT JOIN host_classes c ON c.host = k.host AND c.dscp = k.dscp AND k.trust = 'dscp'
  LEFT JOIN host_protected p ON p.host = k.host AND p.classes <> ''
  LEFT JOIN switch_classes s ON s.dscp = k.dscp
  LEFT JOIN switch_protected w ON true
),
checked AS (
  SELECT job, host, unnest([
    {'name': 'RDMA off and devices named', 'wrong': v['NCCL_IB_DISABLE'] = '1' AND coalesce(networks = ['Socket'], true)
        AND (len(named_devices(v['NCCL_IB_HCA'])) > 0 OR lower(v['NCCL_NET']) = 'ib'),
      'said': 'NCCL_IB_DISABLE=1 turns RDMA off, and ' || coalesce('NCCL_IB_HCA=' || v['NCCL_IB_HCA'] || ' names devices for it', 'NCCL_NET=IB asks for it')},
    {'name': 'sockets and RDMA settings', 'wrong': lower(v['NCCL_NET']) = 'socket'
        AND coalesce(v['NCCL_NET_GDR_LEVEL'], v['NCCL_IB_HCA'], v['NCCL_IB_TC'], v['NCCL_IB_QPS_PER_CONNECTION'], v['NCCL_IB_GID_INDEX']) IS NOT NULL,
      'said': 'NCCL_NET=Socket, and ' || list_filter(map_keys(v), lambda x: x IN ('NCCL_NET_GDR_LEVEL', 'NCCL_IB_HCA', 'NCCL_IB_TC', 'NCCL_IB_QPS_PER_CONNECTION', 'NCCL_IB_GID_INDEX'))[1] || ' is set for RDMA'},
    {'name': 'no device by that name', 'wrong': len(absent) > 0 AND len(absent) = len(named_devices(v['NCCL_IB_HCA'])) AND len(devices) > 0
        AND networks = ['Socket'] AND v['NCCL_IB_DISABLE'] IS DISTINCT FROM '1',
      'said': format('NCCL_IB_HCA={} names none of the devices, which are {}', v['NCCL_IB_HCA'], array_to_string(list_sort(devices)[:8], ', '))},
    {'name': 'some devices are not there', 'wrong': len(unused) > 0 AND len(unused) < len(named_devices(v['NCCL_IB_HCA'])),
      'said': format('NCCL_IB_HCA names {}, which NCCL does not use', array_to_string([ltrim(d, '=') FOR d IN unused], ', '))},
    {'name': 'no interface by that name', 'wrong': len(no_interface) > 0 AND len(no_interface) = len(named_devices(v['NCCL_SOCKET_IFNAME'])) AND len(interfaces) > 0,
      'said': format('NCCL_SOCKET_IFNAME={} names none of the interfaces, which are {}', v['NCCL_SOCKET_IFNAME'], array_to_string(list_sort(interfaces)[:8], ', '))},
    {'name': 'split over one queue pair', 'wrong': v['NCCL_IB_SPLIT_DATA_ON_QPS'] = '1' AND coalesce(v['NCCL_IB_QPS_PER_CONNECTION'], '1') = '1',
      'said': 'NCCL_IB_SPLIT_DATA_ON_QPS=1 with one queue pair a connection'},
    {'name': 'adaptive routing and its threshold', 'wrong': v['NCCL_IB_ADAPTIVE_ROUTING'] = '1'
        AND try_cast(v['NCCL_IB_AR_THRESHOLD'] AS BIGINT) > coalesce(try_cast(v['NCCL_BUFFSIZE'] AS BIGINT), 4194304),
      'said': format('NCCL_IB_ADAPTIVE_ROUTING=1, and NCCL_IB_AR_THRESHOLD={} is above the size of a buffer', v['NCCL_IB_AR_THRESHOLD'])},
    {'name': 'NVLS off and asked for', 'wrong': v['NCCL_NVLS_ENABLE'] = '0' AND names_nvls(v['NCCL_ALGO']),
      'said': format('NCCL_NVLS_ENABLE=0, and NCCL_ALGO={} asks for NVLS', v['NCCL_ALGO'])},
    -- NVLS alone is a request, which `config_mismatch` holds against what is given.
    {'name': 'NVLS named and not there', 'wrong': names_nvls(v['NCCL_ALGO']) AND nvls = 0 AND local_ranks > 1
        AND v['NCCL_NVLS_ENABLE'] IS DISTINCT FROM '0' AND upper(v['NCCL_ALGO']) NOT IN ('NVLS', 'NVLSTREE'),
      'said': format('NCCL_ALGO={} names NVLS, and no communicator has channels of it', v['NCCL_ALGO'])},
    {'name': 'CollNet named and not enabled', 'wrong': names_collnet(v['NCCL_ALGO']) AND v['NCCL_COLLNET_ENABLE'] IS DISTINCT FROM '1' AND nodes > 1,
      'said': format('NCCL_ALGO={} names CollNet, and NCCL_COLLNET_ENABLE is {}', v['NCCL_ALGO'], coalesce(v['NCCL_COLLNET_ENABLE'], 'not set'))},
    {'name': 'CollNet without a plugin', 'wrong': v['NCCL_COLLNET_ENABLE'] = '1' AND lower(v['NCCL_NET_PLUGIN']) = 'none',
      'said': 'NCCL_COLLNET_ENABLE=1, and NCCL_NET_PLUGIN=none loads no plugin'},
    {'name': 'no algorithm for some calls', 'wrong': minor >= 24 AND len(no_gather) > 0 AND NOT contains(v['NCCL_ALGO'], ':'),
      'said': format('NCCL_ALGO={} leaves AllGather and ReduceScatter no algorithm', v['NCCL_ALGO'])},
    {'name': 'NVLink off', 'wrong': no_p2p AND has_nvlink AND coalesce(local_ranks, 2) > 1 AND v['NCCL_SHM_DISABLE'] IS DISTINCT FROM '1',
      'said': format('{} turns the direct links of GPUs off', CASE WHEN v['NCCL_P2P_DISABLE'] = '1' THEN 'NCCL_P2P_DISABLE=1' ELSE 'NCCL_P2P_LEVEL=' || v['NCCL_P2P_LEVEL'] END)},
    {'name': 'only the network is left', 'wrong': no_p2p AND v['NCCL_SHM_DISABLE'] = '1' AND local_ranks > 1,
      'said': 'NCCL_SHM_DISABLE=1 and no P2P leave GPUs of one host the network alone'},
    {'name': 'fewer channels allowed than wanted', 'wrong': fewest > most,
      'said': format('at least {} channels are wanted and {} allowed', fewest, most)},
    {'name': 'fewer channels than NICs', 'wrong': most < len(nics) AND nodes > 1 AND coalesce(fewest, 0) <= most,
      'said': format('{} is fewer channels than the {} NICs of a host', coalesce('NCCL_MAX_NCHANNELS=' || v['NCCL_MAX_NCHANNELS'], 'NCCL_MAX_CTAS=' || v['NCCL_MAX_CTAS']), len(nics))},
    -- Asked for by an algorithm, it is the contradiction above.
    {'name': 'NVLS off', 'wrong': v['NCCL_NVLS_ENABLE'] = '0' AND has_nvls AND local_ranks > 1 AND NOT coalesce(names_nvls(v['NCCL_ALGO']), false),
      'said': 'NCCL_NVLS_ENABLE=0 where NVSwitch can reduce'},
    {'name': 'PXN off and asked for', 'wrong': v['NCCL_PXN_DISABLE'] = '1' AND v['NCCL_P2P_PXN_LEVEL'] IN ('1', '2'),
      'said': format('NCCL_PXN_DISABLE=1, and NCCL_P2P_PXN_LEVEL={} asks for PXN', v['NCCL_P2P_PXN_LEVEL'])},
    {'name': 'too many sockets', 'wrong': try_cast(v['NCCL_SOCKET_NTHREADS'] AS INT) * try_cast(v['NCCL_NSOCKS_PERTHREAD'] AS INT) > 64,
      'said': format('NCCL_SOCKET_NTHREADS={} times NCCL_NSOCKS_PERTHREAD={} is above 64', v['NCCL_SOCKET_NTHREADS'], v['NCCL_NSOCKS_PERTHREAD'])},
    {'name': 'GPUDirect without a way', 'wrong': v['NCCL_DMABUF_ENABLE'] = '0' AND NOT has_peermem AND len([n FOR n IN networks IF n LIKE 'IB%']) > 0,
      'said': 'NCCL_DMABUF_ENABLE=0, and nvidia_peermem is not loaded'},
    {'name': 'unprotected class', 'wrong': host_drops OR switch_drops,
      'said': format('NCCL_IB_TC={} is DSCP {} in class {} of {}, where class {} is protected', v['NCCL_IB_TC'], dscp,
        CASE WHEN host_drops THEN class ELSE switch_class END, CASE WHEN host_drops THEN 'its host' ELSE 'the switches' END,
        CASE WHEN host_drops THEN classes ELSE switch_classes END)},
    {'name': 'address of RoCE v1', 'wrong': has_roce IS DISTINCT FROM false AND list_contains(old_indices, v['NCCL_IB_GID_INDEX']),
      'said': format('NCCL_IB_GID_INDEX={} is an address of RoCE v1', v['NCCL_IB_GID_INDEX'])},
    {'name': 'service level without a reader', 'wrong': has_roce AND trust = 'dscp' AND try_cast(v['NCCL_IB_SL'] AS INT) > 0 AND v['NCCL_IB_TC'] IS NULL,
      'said': format('NCCL_IB_SL={} without NCCL_IB_TC where hosts trust DSCP', v['NCCL_IB_SL'])},
    {'name': 'pointers checked', 'wrong': v['NCCL_CHECK_POINTERS'] = '1' OR upper(v['NCCL_CHECK_MODE']) LIKE 'DEBUG%',
      'said': CASE WHEN v['NCCL_CHECK_POINTERS'] = '1' THEN 'NCCL_CHECK_POINTERS=1' ELSE 'NCCL_CHECK_MODE=' || v['NCCL_CHECK_MODE'] END || ' checks every call'},
    {'name': 'launch mode of debugging', 'wrong': upper(v['NCCL_LAUNCH_MODE']) = 'GROUP', 'said': 'NCCL_LAUNCH_MODE=GROUP is set'},
    {'name': 'LL alone', 'wrong': list_sort(asked_in(v['NCCL_PROTO'])) = ['ll'] AND NOT contains(v['NCCL_PROTO'], ':'),
      'said': 'NCCL_PROTO=' || v['NCCL_PROTO'] || ' allows the protocol LL alone'}
  ]) AS c
  FROM classed
),
wrong AS (
  SELECT job, host, c.name AS name, c.said AS said, NULL::VARCHAR AS variable FROM checked WHERE c.wrong
  UNION ALL
  SELECT s.job, s.host, 'value not accepted', format('{}={} is no value that NCCL accepts', s.name, s.value), s.name
  FROM set_values s JOIN nccl_accepted_values a USING (name)
  WHERE NOT regexp_full_match(s.value, a.accepted, 'i')
),
counted AS (
  SELECT w.*, count(*) OVER (PARTITION BY w.job, w.name, w.variable) AS wrong_hosts, j.hosts
  FROM wrong w JOIN (SELECT job, count(*) AS hosts FROM host_variables GROUP BY job) j ON j.job IS NOT DISTINCT FROM w.job
)
SELECT w.job, w.name, w.variable, t.type, CASE WHEN t.type = 'host' THEN w.host END AS host, w.wrong_hosts, w.hosts,
  CASE WHEN t.type = 'job' THEN w.wrong_hosts / w.hosts END AS share,
  CASE WHEN t.type = 'job' AND w.hosts > 1 THEN format('{} of {} hosts', w.wrong_hosts, w.hosts) END AS everywhere,
  w.said, c.level, c.why, c.first_step, c.source
FROM counted w
JOIN nccl_variable_checks c USING (name)
CROSS JOIN LATERAL (SELECT CASE WHEN w.wrong_hosts > $most_hosts * w.hosts THEN 'job' ELSE 'host' END AS type) t
QUALIFY t.type = 'host' OR row_number() OVER (PARTITION BY w.job, w.name, w.variable ORDER BY w.host) = 1
ORDER BY w.job, w.name, w.variable, w.host
