-- The ports that a configuration names by one text: `swp1-4,swp6`, `swp1-4,6`, `swp1s0-3`, `Ethernet1/1-32`.
CREATE OR REPLACE MACRO ports_of(written) AS flatten([
  CASE WHEN regexp_full_match(p, '[A-Za-z]+\d{1,3}-(?:[A-Za-z]+)?\d{1,3}s\d{1,2}-\d{1,2}')
      THEN flatten([[regexp_extract(p, '^[A-Za-z]+') || i || 's' || j FOR j IN range(regexp_extract(p, 's(\d+)-\d+$', 1)::INT, regexp_extract(p, '-(\d+)$', 1)::INT + 1)]
        FOR i IN range(regexp_extract(p, '^[A-Za-z]+(\d+)-', 1)::INT, regexp_extract(p, '-(?:[A-Za-z]+)?(\d+)s', 1)::INT + 1)])
    WHEN regexp_full_match(p, '.*?[^0-9]\d{1,4}-(?:[^0-9,-][^,-]*?)??\d{1,4}')
      THEN [regexp_extract(p, '^(.*?[^0-9])\d+-', 1) || i FOR i IN range(regexp_extract(p, '^.*?[^0-9](\d+)-', 1)::INT, regexp_extract(p, '(\d+)$', 1)::INT + 1)]
    ELSE [p] END
  FOR p IN [regexp_replace(CASE WHEN NOT regexp_matches(trim(w), '^\d') THEN trim(w)
      WHEN contains(w, '/') THEN regexp_extract(trim(written), '^[A-Za-z]+') || trim(w)
      ELSE regexp_extract(trim(written), '^[A-Za-z]+(?:\d+/)*') || trim(w) END, '^Eth?(\d)', 'Ethernet\1') FOR w IN string_split(written, ',')]
]);
-- The numbers of a list: `24,26`, `0-7`, `af31`, `cs6`.
CREATE OR REPLACE MACRO dscps_of(written) AS flatten([
  CASE WHEN regexp_full_match(w, '\d{1,2}-\d{1,2}') THEN [i::VARCHAR FOR i IN range(split_part(w, '-', 1)::INT, split_part(w, '-', 2)::INT + 1)]
    WHEN w LIKE 'af__' THEN [(8 * try_cast(w[3] AS INT) + 2 * try_cast(w[4] AS INT))::VARCHAR]
    WHEN w LIKE 'cs_' THEN [(8 * try_cast(w[3] AS INT))::VARCHAR]
    WHEN w = 'ef' THEN ['46'] WHEN w = 'default' THEN ['0'] ELSE [w] END
  FOR w IN regexp_extract_all(lower(written), '[\w-]+')
]);
-- Bytes of a threshold; what is rounded (146.48 KB) to three digits. A unit that differs by ASIC (segments) stays.
CREATE OR REPLACE MACRO three_digits(number) AS try_cast(
  round(number / pow(10, floor(log10(greatest(number, 1))) - 2)) * pow(10, floor(log10(greatest(number, 1))) - 2) AS BIGINT);
CREATE OR REPLACE MACRO threshold_of(name, value) AS CASE
  WHEN name LIKE '% KB' THEN three_digits(1024 * try_cast(value AS DOUBLE))::VARCHAR
  WHEN name LIKE '% MB' THEN three_digits(1048576 * try_cast(value AS DOUBLE))::VARCHAR
  WHEN name LIKE '% kbytes' THEN try_cast(1000 * try_cast(value AS DOUBLE) AS BIGINT)::VARCHAR
  WHEN regexp_full_match(value, '\d+ [kKmMgG]?bytes')
    THEN try_cast(try_cast(split_part(value, ' ', 1) AS DOUBLE) * CASE lower(split_part(value, ' ', 2))[1] WHEN 'k' THEN 1000 WHEN 'm' THEN 1000000 WHEN 'g' THEN 1000000000 ELSE 1 END AS BIGINT)::VARCHAR
  ELSE value
END;
CREATE OR REPLACE MACRO on_or_off(value) AS CASE
  WHEN lower(value) IN ('on', 'enable', 'enabled', 'true', 'yes', 'dynamic') THEN 'on'
  WHEN lower(value) IN ('off', 'disable', 'disabled', 'false', 'no', 'hash') THEN 'off' ELSE lower(value) END;

-- The number that binary digits write.
CREATE OR REPLACE MACRO binary_number(digits) AS list_sum([CASE WHEN digits[i] = '1' THEN 1 << (length(digits) - i) ELSE 0 END FOR i IN range(1, length(digits) + 1)]);
-- The values of DSCP that Junos writes by bits or by name: `011010 000001`, `ef`.
CREATE OR REPLACE MACRO code_points_of(written) AS flatten([
  CASE WHEN regexp_full_match(w, '[01]{6}') THEN [binary_number(w)::VARCHAR] WHEN w = 'be' THEN ['0'] WHEN w = 'nc1' THEN ['48'] WHEN w = 'nc2' THEN ['56'] ELSE dscps_of(w) END
  FOR w IN regexp_extract_all(lower(written), '[\w-]+')
]);

-- Formats of what is worked out below; others tell settings by the names that SONiC gives them.
CREATE OR REPLACE MACRO is_configuration(format) AS coalesce(format, '') IN
  ('running_config', 'nvue_config', 'cumulus_qos_files', 'eos_qos', 'nxos_settings', 'nxos_settings_json', 'nvue_roce', 'nvue_settings_json', 'sonic_config_db', 'junos_config', 'srl_settings_json');
-- The priorities that lists like `3, 4` name together.
CREATE OR REPLACE MACRO classes_in(written) AS
  array_to_string(list_sort(list_distinct(flatten([string_split(replace(w, ' ', ''), ',') FOR w IN written]))), ',');

-- The system of each switch whose configuration was read, and whether it was read whole (a section leaves out what it is not of).
CREATE OR REPLACE TABLE configured_systems AS
SELECT device, CASE
    WHEN bool_or(format = 'sonic_config_db') THEN 'SONiC'
    WHEN bool_or(format = 'junos_config') THEN 'Junos'
    WHEN bool_or(format = 'srl_settings_json') THEN 'SR Linux'
    WHEN bool_or(format LIKE 'nvue%' OR format = 'cumulus_qos_files') THEN 'Cumulus'
    WHEN bool_or(format LIKE 'nxos%' OR (profile = 'system' AND name = 'NX-OS') OR name IN ('pfc mode', 'qos policy', 'queuing policy', 'network-qos policy', 'set class')) THEN 'NX-OS'
    WHEN bool_or(format LIKE 'eos%' OR (profile = 'system' AND name = 'EOS') OR name IN ('service-profile', 'pfc', 'trust')) THEN 'EOS' END AS system,
  coalesce(bool_or(format IN ('sonic_config_db', 'nvue_config', 'nvue_settings_json') OR profile = 'system'), false) AS is_whole
FROM settings WHERE is_configuration(format) AND device IS NOT NULL GROUP BY device;

-- What switches are set to do, whatever profiles, policies and ranges of ports their configurations say it by, in the names
-- and units of SONiC's commands. A port has `not set` where its configuration was read, says nothing of the setting, and
-- other ports of its switch are set, or ports of other switches of its system if its configuration was read whole: what it
-- does then is the default of its system, which is not printed.
-- `profile` is the profile, the queue an ECN threshold is of, or what a hash is for.
CREATE OR REPLACE TABLE switch_settings AS
WITH raw AS (
  -- SONiC sets `global` for the whole switch, and wrote names of maps as [DSCP_TO_TC_MAP|AZURE].
  SELECT * REPLACE (CASE WHEN format = 'sonic_config_db' THEN nullif(port, 'global') ELSE port END AS port,
    CASE WHEN format = 'sonic_config_db' THEN regexp_replace(value, '^\[[A-Z_]+\|(.*)\]$', '\1') ELSE value END AS value)
  FROM settings
  WHERE is_configuration(format)
    AND value IS NOT NULL AND device IS NOT NULL
  -- A section of a configuration is printed as a whole: what it said before holds no more.
  QUALIFY ts IS NOT DISTINCT FROM max(ts) OVER (PARTITION BY format, device, port, profile,
    CASE WHEN format NOT IN ('running_config', 'nvue_config', 'nvue_settings_json', 'sonic_config_db', 'junos_config', 'srl_settings_json') OR (port IS NULL AND profile IS NULL) THEN concat_ws(' ', name, queue) END)
),
-- Junos sets ports by wildcards, too: what names a port by itself counts more.
written AS (
  SELECT device, port AS written, unnest(ports_of(port)) AS port, 0 AS width
  FROM (SELECT DISTINCT device, port FROM raw WHERE port IS NOT NULL AND NOT regexp_matches(port, '[*?\[]|^all$'))
  UNION ALL
  SELECT w.device, w.written, coalesce(k.port, w.written), CASE WHEN w.written = 'all' THEN 2 ELSE 1 END
  FROM (SELECT DISTINCT device, port AS written FROM raw WHERE regexp_matches(port, '[*?\[]|^all$')) w
  LEFT JOIN (SELECT DISTINCT device, port FROM raw WHERE name IN ('interface', 'in use')) k ON k.device = w.device AND (w.written = 'all' OR k.port GLOB w.written)
),
ported AS (
  SELECT r.device, w.port, r.profile, r.queue, r.name, r.value, r.ts
  FROM raw r JOIN written w ON w.device = r.device AND w.written = r.port
  QUALIFY w.width = min(w.width) OVER (PARTITION BY r.device, w.port, r.name, r.queue)
),
-- What a port says itself, and what the profiles and policies that it names say.
reached AS (
  SELECT device, port, queue, name, value, ts, 0 AS depth FROM ported
  UNION ALL
  SELECT p.device, p.port, r.queue, r.name, r.value, p.ts, 1
  FROM ported p JOIN raw r ON r.device = p.device AND r.port IS NULL AND r.profile = CASE WHEN p.value = 'applied' THEN p.profile ELSE p.value END
  WHERE p.name IN ('service-profile', 'pfc profile', 'pfc mapping', 'ecn profile', 'mapping profile', 'queuing policy')
),
by_port AS (SELECT * FROM reached QUALIFY depth = min(depth) OVER (PARTITION BY device, port, name, queue)),
-- What holds for the whole switch: outside of profiles, in the default one, and in the policies of the system.
by_device AS (
  SELECT device, queue, name, value, ts FROM raw WHERE port IS NULL AND (profile IS NULL OR profile = 'default-global')
  UNION ALL
  SELECT s.device, r.queue, r.name, r.value, s.ts
  FROM raw s JOIN raw r ON r.device = s.device AND r.port IS NULL AND r.profile = s.value
  WHERE s.profile = 'system qos' AND s.name LIKE '% policy'
),
-- Ports that carry traffic, as far as their configuration tells.
used AS (
  SELECT device, port, max(ts) AS ts FROM ported
  WHERE regexp_full_match(port, 'Ethernet[\d/]+|swp\d+(s\d+)?|(et|xe|ge|mge)-\d+/\d+/\d+(:\d+)?|ethernet-\d+/\d+(/\d+)?')
  GROUP BY device, port
  HAVING count(*) FILTER (name = 'admin_status' AND value IN ('up', 'enable')) > 0 OR count(*) FILTER (name = 'interface') > 0 AND count(*) FILTER (name NOT IN ('interface', 'shutdown')) > 0 AND count(*) FILTER (name = 'shutdown') = 0
),
pfc AS (
  SELECT p.device, p.port, max(p.ts) AS ts, any_value(p.value) FILTER (p.name = 'pfc') AS pfc, any_value(p.value) FILTER (p.name = 'pfc mode') AS mode,
    count(*) FILTER (p.name IN ('rx', 'tx') AND on_or_off(p.value) = 'off') = 2 AS is_deaf,
    classes_in(list(p.value) FILTER (p.name = 'pfc_priority')) AS classes
  FROM by_port p GROUP BY p.device, p.port
),
device_pfc AS (
  SELECT device, max(ts) AS ts, classes_in(list(value)) AS classes
  FROM by_device WHERE name = 'pfc_priority' GROUP BY device
),
-- Junos pauses a DSCP by the priority of the class that the port's classifier puts it into.
classified AS (SELECT device, profile, unnest(code_points_of(name)) AS dscp, value AS class, ts FROM raw WHERE queue = 'dscp bits'),
class_priorities AS (
  SELECT device, profile AS class, any_value(value) FILTER (name = 'class priority') AS priority, any_value(value) FILTER (name = 'class queue') AS queue
  FROM raw WHERE name IN ('class priority', 'class queue') GROUP BY device, profile
),
points AS (
  SELECT p.device, p.port, p.ts, coalesce(k.priority, 'on') AS value
  FROM ported p
  JOIN (SELECT device, profile, unnest(code_points_of(value)) AS dscp FROM raw WHERE name = 'pfc dscp') c ON c.device = p.device AND c.profile = p.value
  LEFT JOIN ported f ON f.device = p.device AND f.port = p.port AND f.name = 'dscp classifier'
  LEFT JOIN classified d ON d.device = p.device AND d.dscp = c.dscp AND d.profile = coalesce(f.value, d.profile)
  LEFT JOIN class_priorities k ON k.device = p.device AND k.class = d.class
  WHERE p.name = 'pfc profile'
  UNION ALL
  SELECT p.device, p.port, p.ts, binary_number(c.value)::VARCHAR
  FROM ported p JOIN raw c ON c.device = p.device AND c.profile = p.value AND c.name = 'pfc pcp' AND regexp_full_match(c.value, '[01]{3}')
  WHERE p.name = 'pfc profile'
),
-- SR Linux pauses the priorities of the profile that a port names, if PFC is on there.
mapped AS (
  SELECT e.device, e.port, max(e.ts) AS ts, CASE WHEN NOT bool_or(on_or_off(e.value) = 'on') THEN 'none'
      ELSE coalesce(nullif(classes_in(list(k.queue) FILTER (k.queue IS NOT NULL)), ''), 'on') END AS value
  FROM ported e LEFT JOIN ported m ON m.device = e.device AND m.port = e.port AND m.name = 'pfc mapping'
  LEFT JOIN raw k ON k.device = e.device AND k.name = 'pfc priority' AND on_or_off(k.value) = 'on' AND k.profile = coalesce(m.value, 'default')
  WHERE e.name = 'pfc enable' GROUP BY e.device, e.port
),
policies AS (SELECT DISTINCT device FROM raw WHERE name = 'network-qos policy'),
-- EOS drops nothing of the priorities listed if PFC is on, NX-OS nothing of those of its network-qos policy.
protecting AS (
  SELECT p.device, p.port, p.ts, CASE
      WHEN p.pfc = 'off' OR p.mode = 'off' OR p.is_deaf THEN 'none'
      WHEN p.mode = 'on' AND n.device IS NOT NULL THEN coalesce(d.classes, 'none')
      -- Of which priorities is not told.
      WHEN p.mode IS NOT NULL THEN p.mode
      WHEN p.pfc = 'on' THEN coalesce(nullif(p.classes, ''), 'none')
      WHEN p.classes <> '' AND EXISTS (FROM raw r WHERE r.device = p.device AND r.name = 'pfc') THEN NULL
      ELSE nullif(p.classes, '') END AS value
  FROM pfc p LEFT JOIN device_pfc d USING (device) LEFT JOIN policies n USING (device)
),
watchdogs AS (
  SELECT device, any_value(on_or_off(value)) FILTER (name = 'watchdog') AS state,
    any_value(value) FILTER (name = 'watchdog timeout') AS timeout, any_value(value) FILTER (name = 'watchdog action') AS action,
    try_cast(any_value(value) FILTER (name = 'watchdog poll interval') AS SMALLINT)::BIGINT AS interval_ms,
    try_cast(any_value(value) FILTER (name IN ('watchdog shutdown-multiplier', 'watchdog robustness')) AS SMALLINT)::BIGINT AS polls,
    try_cast(any_value(value) FILTER (name = 'watchdog auto-restore multiplier') AS SMALLINT)::BIGINT AS restore_polls,
    any_value(value) FILTER (name = 'watchdog recovery-time') AS recovery, any_value(value) FILTER (name = 'watchdog polling-interval') AS polling, max(ts) AS ts
  FROM by_device WHERE name LIKE 'watchdog%' GROUP BY device
),
port_watchdogs AS (
  SELECT p.device, p.port, max(p.ts) AS ts, any_value(on_or_off(p.value)) FILTER (p.name = 'watchdog') AS state,
    any_value(p.value) FILTER (p.name = 'watchdog timeout') AS timeout, any_value(p.value) FILTER (p.name = 'watchdog action') AS action,
    any_value(p.value) FILTER (p.name = 'watchdog recovery-time') AS recovery, any_value(p.value) FILTER (p.name = 'ACTION') AS does
  FROM by_port p GROUP BY p.device, p.port
),
-- EOS watches all ports that pause once there is a timeout; NX-OS, Cumulus and Junos watch those that say so, SONiC those it has
-- an action for.
watched AS (
  SELECT p.device, p.port, greatest(p.ts, w.ts) AS ts, CASE
      WHEN p.state = 'off' OR (w.state = 'off' AND p.state IS NOT NULL) THEN 'off'
      WHEN p.state = 'on' OR p.does IS NOT NULL THEN 'on'
      WHEN coalesce(w.timeout, p.timeout) IS NOT NULL AND q.pfc = 'on' THEN 'on' END AS value,
    coalesce(p.action, w.action) AS action
  FROM port_watchdogs p LEFT JOIN watchdogs w USING (device) LEFT JOIN pfc q USING (device, port)
),
times AS (
  SELECT device, NULL AS port, ts, timeout, recovery, polling, interval_ms, polls, restore_polls FROM watchdogs
  UNION ALL SELECT device, port, ts, timeout, recovery, NULL, NULL, NULL, NULL FROM port_watchdogs
),
-- SONiC names a profile for each queue, whose thresholds for packets of no colour are the green ones.
wred AS (
  SELECT p.device, p.port, p.queue, CASE WHEN r.name = 'ecn' THEN 'ecn' WHEN r.name = 'green_drop_probability' THEN 'probability' ELSE r.name[7:] END AS name,
    CASE WHEN r.name <> 'ecn' THEN r.value WHEN regexp_matches(r.value, 'all|green') THEN 'on' ELSE 'off' END AS value, p.ts
  FROM ported p JOIN raw r ON r.device = p.device AND r.queue = 'wred' AND r.profile = p.value
  WHERE p.name = 'wred profile' AND r.name IN ('ecn', 'green_min_threshold', 'green_max_threshold', 'green_drop_probability')
),
-- Junos: the port's scheduler map names the scheduler of each class, and that its drop profile, in percent of the buffer.
levels AS (
  SELECT device, profile, name, list(try_cast(level AS SMALLINT) ORDER BY try_cast(level AS SMALLINT)) AS levels
  FROM (SELECT device, profile, name, unnest(regexp_extract_all(value, '\d+')) AS level FROM raw WHERE name IN ('fill level', 'drop probability'))
  GROUP BY device, profile, name
),
schedulers AS (
  SELECT e.device, e.profile, 'ecn' AS name, 'on' AS value FROM raw e WHERE e.name = 'scheduler ecn'
  UNION ALL
  SELECT e.device, e.profile, CASE WHEN l.name = 'fill level' THEN 'min_threshold' ELSE 'probability' END,
    CASE WHEN l.name = 'fill level' THEN l.levels[1] || ' %' ELSE l.levels[-1]::VARCHAR END
  FROM raw e JOIN raw d ON d.device = e.device AND d.profile = e.profile AND d.name = 'drop profile'
  JOIN levels l ON l.device = d.device AND l.profile = d.value WHERE e.name = 'scheduler ecn'
  UNION ALL
  SELECT e.device, e.profile, 'max_threshold', l.levels[-1] || ' %'
  FROM raw e JOIN raw d ON d.device = e.device AND d.profile = e.profile AND d.name = 'drop profile'
  JOIN levels l ON l.device = d.device AND l.profile = d.value AND l.name = 'fill level' WHERE e.name = 'scheduler ecn'
),
scheduled AS (
  SELECT p.device, p.port, coalesce(k.queue, CASE m.queue WHEN 'best-effort' THEN '0' WHEN 'fcoe' THEN '3' WHEN 'no-loss' THEN '4' WHEN 'network-control' THEN '7' END) AS queue,
    s.name, s.value, p.ts
  FROM ported p JOIN raw m ON m.device = p.device AND m.profile = p.value AND m.name = 'scheduler'
  JOIN schedulers s ON s.device = m.device AND s.profile = m.value
  LEFT JOIN class_priorities k ON k.device = m.device AND k.class = m.queue
  WHERE p.name = 'scheduler map'
),
-- SR Linux: the slopes that mark of the profile of each queue, in percent, too.
slopes AS (
  SELECT p.device, p.port, regexp_extract(p.queue, '(\d)$', 1) AS queue, r.name,
    CASE WHEN r.name LIKE '%threshold' THEN r.value || ' %' ELSE r.value END AS value, p.ts
  FROM ported p JOIN raw r ON r.device = p.device AND r.profile = p.value AND r.name IN ('ecn', 'min_threshold', 'max_threshold', 'probability')
  WHERE p.name = 'queue profile' AND (r.name = 'ecn' OR on_or_off(r.queue) = 'on')
),
ecn AS (
  SELECT device, port, unnest(string_split(coalesce(CASE WHEN queue ~ '^\d(,\d)*$' THEN queue ELSE regexp_extract(queue, '-q-?(\d|default)$', 1) END, ''), ',')) AS queue,
    regexp_extract(name, '^\w+') AS name, CASE WHEN name = 'ecn' THEN on_or_off(value) WHEN name = 'probability' THEN value ELSE threshold_of(name, value) END AS value, ts
  FROM (SELECT device, port, queue, name, value, ts FROM by_port UNION ALL SELECT device, NULL, queue, name, value, ts FROM by_device
    UNION ALL FROM wred UNION ALL FROM scheduled UNION ALL FROM slopes)
  WHERE regexp_matches(name, '^(ecn|min_threshold|max_threshold|probability)( |$)') AND name NOT IN ('ecn queues', 'ecn profile')
),
-- `nv show qos roce` and the files of Cumulus tell the queues apart from the thresholds.
ecn_queues AS (SELECT device, unnest(string_split(replace(value, ' ', ''), ',')) AS queue FROM by_device WHERE name = 'ecn queues'),
marking AS (
  SELECT e.device, e.port, coalesce(nullif(e.queue, ''), q.queue) AS queue, e.name, e.value, e.ts
  FROM ecn e LEFT JOIN ecn_queues q ON q.device = e.device AND e.queue = ''
),
-- `qos roce` of Cumulus, by default lossless, sets what its configuration does not print (NVIDIA's manual of RoCE, its `nv show qos roce`);
-- its thresholds differ by release.
roce AS (
  SELECT device, max(ts) AS ts, coalesce(any_value(value) FILTER (name = 'mode'), 'lossless') AS mode
  FROM raw WHERE profile = 'roce' AND format LIKE 'nvue%' GROUP BY device
  HAVING count(*) FILTER (name IN ('enable', 'state') AND on_or_off(value) = 'off') = 0
),
defaults AS (
  SELECT device, NULL AS profile, 'lossless_priorities' AS name, CASE WHEN mode LIKE 'lossless%' THEN '3' ELSE 'none' END AS value, ts FROM roce
  UNION ALL SELECT device, NULL, 'trust', 'pcp,dscp', ts FROM roce
  UNION ALL SELECT device, 'queue ' || q, 'ecn', 'on', ts FROM roce, (VALUES ('0'), ('3')) AS t(q)
  UNION ALL SELECT device, NULL, 'DSCP ' || d, (d // 8)::VARCHAR, ts FROM roce, range(64) AS t(d)
  UNION ALL
  -- EOS maps eight values of DSCP to a class, the first two swapped, unless told otherwise (Arista's manual of QoS, all its platforms).
  SELECT c.device, NULL, 'DSCP ' || d, (CASE WHEN d < 16 THEN 1 - d // 8 ELSE d // 8 END)::VARCHAR, r.ts
  FROM configured_systems c JOIN (SELECT device, max(ts) AS ts FROM raw GROUP BY device) r USING (device), range(64) AS t(d)
  WHERE c.system = 'EOS' AND c.is_whole
),
maps AS (
  SELECT device, unnest(dscps_of(name)) AS dscp, value AS class, ts FROM raw
  WHERE queue = 'dscp' AND (format <> 'sonic_config_db' OR EXISTS (FROM raw a WHERE a.device = raw.device AND a.name = 'dscp_to_tc_map' AND a.value = raw.profile))
  UNION ALL
  SELECT c.device, c.dscp, coalesce(k.priority, k.queue), c.ts
  FROM classified c JOIN class_priorities k ON k.device = c.device AND k.class = c.class
  WHERE EXISTS (FROM raw a WHERE a.device = c.device AND a.name = 'dscp classifier' AND a.value = c.profile)
  UNION ALL
  SELECT device, (10 * try_cast(name AS INT) + generate_subscripts(regexp_extract_all(value, '\d+'), 1) - 1)::VARCHAR,
    unnest(regexp_extract_all(value, '\d+')), ts
  FROM raw WHERE queue = 'dscp decade'
  UNION ALL
  SELECT c.device, unnest(dscps_of(c.value)), p.value, p.ts
  FROM raw c JOIN raw p ON p.device = c.device AND p.queue = c.profile AND p.name = 'set class'
  WHERE c.name = 'match dscp' AND EXISTS (FROM raw a WHERE a.device = c.device AND a.name = 'qos policy' AND a.value = p.profile)
),
fields AS (
  SELECT * FROM (VALUES ('source-ip', 'SRC_IP'), ('destination-ip', 'DST_IP'), ('source-port', 'L4_SRC_PORT'), ('destination-port', 'L4_DST_PORT'),
    ('ip-protocol', 'IP_PROTOCOL'), ('protocol', 'IP_PROTOCOL'), ('ipv6-label', 'IPV6_FLOW_LABEL'), ('ingress-interface', 'IN_PORT'), ('vlan', 'VLAN_ID'),
    ('source-mac', 'SRC_MAC'), ('destination-mac', 'DST_MAC'), ('ether-type', 'ETHERTYPE'),
    ('source ipv4 address', 'SRC_IP'), ('destination ipv4 address', 'DST_IP'), ('source port', 'L4_SRC_PORT'), ('destination port', 'L4_DST_PORT'),
    ('ipv4-source-address', 'SRC_IP'), ('ipv4-destination-address', 'DST_IP'), ('l4-source-port', 'L4_SRC_PORT'), ('l4-destination-port', 'L4_DST_PORT'),
    ('sip', 'SRC_IP'), ('dip', 'DST_IP'), ('sport', 'L4_SRC_PORT'), ('dport', 'L4_DST_PORT'), ('ip_prot', 'IP_PROTOCOL'), ('ip6_label', 'IPV6_FLOW_LABEL'),
    ('ing_intf', 'IN_PORT'), ('smac', 'SRC_MAC'), ('dmac', 'DST_MAC'), ('ether_type', 'ETHERTYPE'), ('vlan_id', 'VLAN_ID')) AS t(word, field)
),
-- Where not all fields are told (`is_whole`), the others are defaults.
flags AS (
  SELECT r.device, r.profile, coalesce(f.field, upper(r.name)) AS field, on_or_off(r.value) AS value, r.ts,
    count(*) FILTER (coalesce(f.field, upper(r.name)) IN ('SRC_IP', 'DST_IP', 'L4_SRC_PORT', 'L4_DST_PORT')) OVER (PARTITION BY r.device, r.profile) = 4 AS is_whole
  FROM raw r LEFT JOIN fields f ON f.word = lower(r.name)
  WHERE r.queue = 'hash' AND r.name <> 'enable' AND r.format <> 'junos_config'
    AND (r.format <> 'cumulus_qos_files' OR EXISTS (FROM raw e WHERE e.device = r.device AND e.profile = r.profile AND e.queue = 'hash' AND e.name = 'enable' AND e.value = 'true'))
),
hashes AS (
  SELECT r.device, r.profile, 'hash_field' AS name, coalesce(f.field, upper(r.value)) AS value, r.ts
  FROM raw r LEFT JOIN fields f ON f.word = lower(r.value) WHERE r.name = 'hash_field'
  UNION ALL
  SELECT device, profile, 'hash_field', unnest(list_concat(
      CASE WHEN regexp_matches(value, 'source|src') THEN ['SRC_IP'] ELSE [] END, CASE WHEN regexp_matches(value, 'destination|dst') THEN ['DST_IP'] ELSE [] END,
      CASE WHEN regexp_matches(value, 'port source|src.*l4port') THEN ['L4_SRC_PORT'] ELSE [] END,
      CASE WHEN regexp_matches(value, 'port (source-)?destination|dst.*l4port') THEN ['L4_DST_PORT'] ELSE [] END)), ts
  FROM raw WHERE name = 'load-sharing' AND NOT regexp_matches(value, 'mac|gre|udf')
  UNION ALL
  -- Junos tells which fields of its default it leaves out (Juniper's reference of `enhanced-hash-key inet`).
  SELECT device, 'ECMP', 'hash_field', unnest(list_filter(['DST_IP', 'IP_PROTOCOL', 'L4_DST_PORT', 'L4_SRC_PORT', 'SRC_IP'], lambda x: NOT list_contains(coalesce(fields, []), x))), ts
  FROM (
    SELECT r.device, list(f.field) FILTER (f.field IS NOT NULL) AS fields, max(r.ts) AS ts
    FROM raw r JOIN configured_systems c ON c.device = r.device AND c.is_whole
    LEFT JOIN fields f ON f.word = r.name AND r.queue = 'hash' WHERE r.format = 'junos_config' GROUP BY r.device
  )
  UNION ALL
  SELECT device, profile, name, value, ts FROM raw WHERE name = 'algorithm'
  UNION ALL
  SELECT device, profile, 'load-sharing', value, ts FROM raw WHERE name = 'load-sharing' AND regexp_matches(value, 'mac|gre|udf')
  UNION ALL
  SELECT device, profile, 'hash_seed', coalesce(nullif(regexp_extract(value, 'universal-id (\S+)', 1), ''), value), ts
  FROM raw WHERE name = 'hash_seed' OR (name = 'load-sharing' AND value LIKE '%universal-id %')
  UNION ALL
  SELECT device, profile, CASE WHEN is_whole THEN 'hash_field' ELSE field END, CASE WHEN is_whole THEN field ELSE value END, ts
  FROM flags WHERE NOT is_whole OR value = 'on'
),
-- SONiC and Junos trust what they have a map of.
trusting AS (
  SELECT device, port, 'trust' AS name, concat_ws(',', CASE WHEN bool_or(name LIKE '%1p%' OR name LIKE 'pcp%') THEN 'pcp' END, CASE WHEN bool_or(name LIKE 'dscp%') THEN 'dscp' END) AS value, max(ts) AS ts
  FROM (SELECT device, port, name, ts FROM by_port UNION ALL SELECT device, NULL, name, ts FROM by_device)
  WHERE name IN ('dscp_to_tc_map', 'dot1p_to_tc_map', 'dscp classifier', 'pcp classifier') GROUP BY device, port
),
set_values AS (
  SELECT device, port, NULL AS profile, 'lossless_priorities' AS name, value, ts FROM protecting WHERE value IS NOT NULL
  UNION ALL
  SELECT device, port, NULL, 'lossless_priorities', coalesce(nullif(classes_in(list(value) FILTER (value <> 'on')), ''), 'on'), max(ts) FROM points GROUP BY device, port
  UNION ALL SELECT device, port, NULL, 'lossless_priorities', value, ts FROM mapped
  UNION ALL
  SELECT d.device, NULL, NULL, 'lossless_priorities', d.classes, d.ts FROM device_pfc d ANTI JOIN policies n USING (device)
  UNION ALL SELECT device, NULL, NULL, name, value, ts FROM by_device WHERE name = 'lossless_priorities'
  UNION ALL SELECT device, port, NULL, name, value, ts FROM by_port WHERE name = 'lossless_priorities'
  UNION ALL SELECT device, port, NULL, 'watchdog', value, ts FROM watched WHERE value IS NOT NULL
  UNION ALL SELECT device, port, NULL, 'ACTION', action, ts FROM watched WHERE value = 'on'
  UNION ALL SELECT device, port, NULL, name, value, ts FROM by_port WHERE name IN ('ACTION', 'DETECTION TIME', 'RESTORATION TIME')
  UNION ALL
  SELECT device, port, NULL, 'DETECTION TIME', coalesce(try_cast(1000 * try_cast(timeout AS DOUBLE) AS BIGINT), interval_ms * polls)::VARCHAR, ts FROM times
  UNION ALL
  SELECT device, port, NULL, 'RESTORATION TIME', coalesce(try_cast(1000 * try_cast(recovery AS DOUBLE) AS BIGINT), interval_ms * restore_polls)::VARCHAR, ts FROM times
  UNION ALL
  SELECT device, port, NULL, 'pfcwd polling interval', coalesce(try_cast(1000 * try_cast(polling AS DOUBLE) AS BIGINT), interval_ms) || 'ms', ts FROM times
  UNION ALL
  SELECT device, NULL, NULL, 'watchdog polls', polls::VARCHAR, ts FROM watchdogs WHERE polls IS NOT NULL AND interval_ms IS NULL
  UNION ALL SELECT device, port, 'queue ' || coalesce(queue, 'all'), name, value, ts FROM marking
  UNION ALL
  SELECT device, port, NULL, 'trust', CASE lower(value) WHEN 'l3' THEN 'dscp' WHEN 'l2' THEN 'pcp' WHEN 'cos' THEN 'pcp' WHEN '802.1p' THEN 'pcp'
      WHEN 'both' THEN 'pcp,dscp' WHEN '802.1p,dscp' THEN 'pcp,dscp' WHEN 'untrusted' THEN 'nothing' ELSE lower(value) END, ts
  FROM (SELECT device, port, value, ts FROM by_port WHERE name = 'trust' UNION ALL SELECT device, NULL, value, ts FROM by_device WHERE name = 'trust'
    UNION ALL SELECT device, port, value, ts FROM trusting)
  UNION ALL SELECT device, NULL, NULL, 'DSCP ' || dscp, class, ts FROM maps
  UNION ALL SELECT device, NULL, profile, name, value, ts FROM hashes
  UNION ALL
  SELECT device, port, NULL, name, CASE WHEN name = 'adaptive_routing' THEN on_or_off(value) ELSE value END, ts
  FROM (SELECT device, port, name, value, ts FROM by_port UNION ALL SELECT device, NULL, name, value, ts FROM raw WHERE port IS NULL)
  WHERE name LIKE 'adaptive_routing%'
  UNION ALL SELECT device, port, NULL, 'mtu', value, ts FROM ported WHERE name = 'mtu'
  UNION ALL
  SELECT device, port, NULL, CASE WHEN name IN ('dscp_to_tc_map', 'dscp classifier') THEN 'mapping profile' WHEN name = 'scheduler map' THEN 'queuing policy' ELSE name END, value, ts
  FROM by_port
  WHERE name IN ('service-profile', 'qos policy', 'queuing policy', 'pfc profile', 'ecn profile', 'mapping profile', 'dscp_to_tc_map', 'dscp classifier', 'scheduler map') AND value <> 'applied'
  UNION ALL SELECT device, NULL, NULL, 'RoCE mode', mode, ts FROM roce
  UNION ALL
  SELECT device, NULL, concat_ws(' ', profile, queue), name, value, ts FROM raw
  WHERE name IN ('maximum-burst-size', 'buffer percent', 'buffer dynamic-threshold', 'memory-percent', 'xoff-threshold', 'xon-threshold', 'port-buffer', 'cable-length', 'queue-limit', 'pause buffer-size', 'mmu queue profile')
  UNION ALL SELECT device, NULL, profile, name, value, ts FROM raw WHERE queue = 'buffer'
),
told AS (
  FROM set_values
  UNION ALL
  SELECT d.device, NULL, d.profile, d.name, d.value, d.ts FROM defaults d
  WHERE NOT EXISTS (FROM set_values v WHERE v.device = d.device AND v.port IS NULL AND v.name = d.name AND v.profile IS NOT DISTINCT FROM d.profile)
),
-- Settings that ports of a switch, and of switches of one system, should share, where a used port says nothing.
shared AS (
  SELECT DISTINCT t.device, c.system, t.profile, t.name FROM told t JOIN configured_systems c USING (device)
  WHERE t.port IS NOT NULL AND t.name IN ('lossless_priorities', 'watchdog', 'trust', 'mtu', 'service-profile', 'qos policy', 'queuing policy', 'pfc profile', 'ecn profile', 'mapping profile', 'ecn')
),
asked AS (
  SELECT device, profile, name FROM shared WHERE name <> 'queuing policy'
  UNION
  SELECT c.device, s.profile, s.name FROM shared s JOIN configured_systems c ON c.system = s.system AND c.is_whole
  WHERE NOT (s.name = 'ecn' AND c.device IN (SELECT device FROM told WHERE name = 'ecn'))
    AND s.name NOT IN ('service-profile', 'qos policy', 'queuing policy', 'pfc profile', 'ecn profile', 'mapping profile')
),
unset AS (
  SELECT u.device, u.port, s.profile, s.name, 'not set' AS value, u.ts
  FROM asked s JOIN used u ON u.device = s.device
  -- What the whole switch is set to holds for its ports.
  WHERE NOT EXISTS (FROM told t WHERE t.device = u.device AND (t.port = u.port OR t.port IS NULL) AND t.name = s.name AND t.profile IS NOT DISTINCT FROM s.profile)
    AND NOT EXISTS (FROM raw r WHERE r.device = u.device AND r.profile = 'system qos' AND r.name = s.name)
  UNION ALL
  -- The same of what is set for a whole switch.
  SELECT c.device, NULL, s.profile, s.name, 'not set', u.ts
  FROM (SELECT DISTINCT c.system, t.profile, t.name FROM told t JOIN configured_systems c USING (device) WHERE t.port IS NULL AND (t.name IN ('ecn', 'trust', 'hash_field', 'RoCE mode', 'adaptive_routing') OR t.name LIKE 'DSCP %')) s
  JOIN configured_systems c ON c.system = s.system AND c.is_whole
  JOIN (SELECT device, max(ts) AS ts FROM used GROUP BY device) u ON u.device = c.device
  WHERE NOT EXISTS (FROM told t WHERE t.device = c.device AND t.name = s.name AND (t.name IN ('ecn', 'trust', 'adaptive_routing') OR t.profile IS NOT DISTINCT FROM s.profile))
)
SELECT device, port, profile, name, value, ts, NULL AS format FROM told WHERE value IS NOT NULL AND device IS NOT NULL
UNION ALL SELECT device, port, profile, name, value, ts, NULL FROM unset
-- A watchdog that does something is on.
UNION ALL SELECT device, port, NULL, 'watchdog', 'on', ts, format FROM settings WHERE name = 'ACTION' AND value IS NOT NULL AND NOT is_configuration(format)
UNION ALL
SELECT device, port, CASE WHEN format = 'sonic_switch_hash_json' THEN upper(profile) ELSE profile END, name, value, ts, format FROM settings
WHERE NOT is_configuration(format);
