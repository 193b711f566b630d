-- question: Do both ends of a cable agree on PFC and MTU, and does a watchdog guard each lossless port?
-- A row is a port of a switch and one setting of which both sides are known. PFC is wrong where the host pauses on a
-- priority that its leaf port does not protect, or on none where the port protects one, or where two switches of a cable
-- protect different priorities; MTU where a host sends larger packets than its port takes, or two switches of one kind differ; the watchdog where a lossless port of a switch
-- that has one is not watched.
WITH watchable AS (SELECT owner, part, classes AS value FROM protecting_ports WHERE part IS NOT NULL),
-- What a whole switch is set to holds for its ports.
protecting AS (
  FROM watchable
  UNION ALL
  SELECT DISTINCT p.owner, c.part, p.classes FROM protecting_ports p JOIN cable_ends c ON c.owner = p.owner AND NOT c.is_nic
  ANTI JOIN watchable w ON w.owner = p.owner AND w.part = c.part WHERE p.part IS NULL
),
watched AS (SELECT owner, part, value FROM port_settings WHERE name = 'watchdog' AND value = 'on' AND part IS NOT NULL),
-- mlnx_qos prints a flag by priority, dcb `3:on`; of a host whose NICs differ the port is not known.
host_priorities AS (
  SELECT host_name(host) AS host, any_value(value) AS value
  FROM (
    SELECT host, CASE WHEN value LIKE '%:o%'
        THEN coalesce(nullif(array_to_string(regexp_extract_all(value, '(\d):on', 1), ','), ''), 'none')
        ELSE coalesce(nullif(array_to_string([i - 1 FOR b, i IN regexp_extract_all(value, '[01]') IF b = '1'], ','), ''), 'none')
      END AS value
    FROM hosts WHERE fact = 'PFC enabled by priority'
  )
  GROUP BY host_name(host) HAVING count(DISTINCT value) = 1
),
mtus AS (
  SELECT coalesce(p.owner, s.device) AS owner, coalesce(p.part, s.port) AS part, s.format,
    arg_max(s.mtu, coalesce(s.ts, '1970-01-01'::TIMESTAMP)) AS mtu
  FROM named_status s LEFT JOIN port_parts p USING (device, port)
  WHERE s.mtu > 0 AND s.link_layer IS DISTINCT FROM 'InfiniBand' GROUP BY ALL
  UNION ALL
  -- Vendors count headers differently: by configurations a switch is compared with its hosts, not with another switch.
  SELECT owner, part, 'configuration of ' || owner, try_cast(value AS BIGINT) FROM port_settings
  WHERE name = 'mtu' AND part IS NOT NULL AND try_cast(value AS BIGINT) > 0
),
cables AS (SELECT DISTINCT owner, part, is_nic, far_owner, far_part, far_is_nic FROM cable_ends),
told AS (
  SELECT 'PFC' AS what, p.owner AS switch, p.part AS port, c.far_owner || ' ' || c.far_part AS far,
    p.value AS value, h.value AS far_value,
    (h.value = 'none') <> (p.value = 'none')
      OR (h.value <> 'none' AND len(list_filter(string_split(h.value, ','), lambda x: NOT list_contains(string_split(p.value, ','), x))) > 0) AS wrong
  FROM protecting p JOIN cables c USING (owner, part) JOIN host_priorities h ON h.host = host_name(c.far_owner)
  UNION ALL
  SELECT 'PFC between switches', a.owner, a.part, c.far_owner || ' ' || c.far_part, a.value, b.value, a.value <> b.value
  FROM protecting a JOIN cables c ON c.owner = a.owner AND c.part = a.part AND NOT c.is_nic AND NOT c.far_is_nic
  JOIN protecting b ON b.owner = c.far_owner AND b.part = c.far_part AND a.owner < b.owner
  UNION ALL
  SELECT 'watchdog', p.owner, p.part, NULL, p.value, coalesce(w.value, 'not watched'), w.value IS NULL
  FROM watchable p LEFT JOIN watched w USING (owner, part)
  WHERE p.value <> 'none' AND p.owner IN (SELECT owner FROM watched)
  UNION ALL
  SELECT 'MTU', a.owner, a.part, c.far_owner || ' ' || c.far_part, a.mtu::VARCHAR, b.mtu::VARCHAR,
    CASE WHEN b.is_host THEN b.mtu > a.mtu ELSE b.mtu <> a.mtu END
  FROM mtus a JOIN cables c ON c.owner = a.owner AND c.part = a.part AND NOT c.is_nic
  JOIN (SELECT m.*, coalesce(t.host IS NOT NULL OR m.format LIKE 'node_exporter%', false) AS is_host
    FROM mtus m LEFT JOIN training_hosts t ON t.host = m.owner) b
    ON b.owner = c.far_owner AND b.part = c.far_part AND (b.is_host OR (b.format = a.format AND a.owner < b.owner))
)
SELECT *, CASE what
    WHEN 'PFC' THEN format('{} pauses on priority {}, its port {} {} protects {}', far, far_value, switch, port, value)
    WHEN 'PFC between switches' THEN format('{} {} protects priority {}, {} at the other end {}', switch, port, value, far, far_value)
    WHEN 'watchdog' THEN format('{} {} protects priority {} and no watchdog guards it', switch, port, value)
    ELSE format('{} {} has an MTU of {}, {} one of {}', switch, port, value, far, far_value)
  END AS said,
  CASE
    WHEN what LIKE 'PFC%' THEN 'A pause of a priority that the other end does not protect is not honoured: queues overflow, packets are lost and sent again.'
    WHEN what = 'watchdog' THEN 'A NIC that pauses without end stops the switch, and the switches behind it, until somebody unplugs it.'
    ELSE 'Packets larger than the MTU of the next port are dropped; small ones pass, so that only transfers fail.'
  END AS why
FROM told
ORDER BY what, switch, port
