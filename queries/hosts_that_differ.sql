-- question: Which hosts differ from the others in modules, firmware, GPU and NIC wiring or QoS?
-- columns:
--   host     host
--   part     GPU, NIC or port the fact is about; null: the host
--   fact     what differs
--   value    its value there; null: missing
--   usual    value most hosts have; null: most have none
--   hosts    hosts that tell facts of this kind
-- example: fabricobs query hosts_that_differ
--
-- Facts that are of one host alone by nature (GUIDs, serial numbers) are left out, and those on which
-- fewer than three hosts, or no majority, say anything. A missing module counts where lsmod was read.
WITH facts AS (
  SELECT DISTINCT host_name(host) AS host, part,
    CASE fact WHEN 'module' THEN 'module ' || value ELSE fact END AS fact,
    CASE fact WHEN 'module' THEN 'loaded' ELSE value END AS value,
    -- Hosts are comparable where the same command was asked.
    CASE fact WHEN 'module' THEN 'module' ELSE concat_ws(' ', part, fact) END AS kind
  FROM hosts
  WHERE host IS NOT NULL AND fact NOT IN ('node_guid', 'sys_image_guid', 'node_desc', 'serial number', 'GUID', 'address', 'pod', 'kernel command line')
    AND fact NOT SIMILAR TO '.*(Errors|rpm|power|temp|uptime).*'
    AND (fact <> 'module' OR value IN ('nvidia_peermem', 'nv_peer_mem', 'gdrdrv', 'mlx5_ib', 'bnxt_re', 'efa'))
),
latest AS (
  SELECT host, part, fact, kind, max(value) AS value FROM facts GROUP BY ALL
),
asked AS (
  SELECT DISTINCT host_name(host) AS host,
    CASE fact WHEN 'module' THEN 'module' ELSE concat_ws(' ', part, fact) END AS kind
  FROM hosts WHERE host IS NOT NULL
),
everything AS (
  SELECT a.host, f.part, f.fact, f.kind, l.value
  FROM (SELECT DISTINCT part, fact, kind FROM latest) f
  JOIN asked a USING (kind)
  LEFT JOIN latest l ON l.host = a.host AND l.fact = f.fact AND l.part IS NOT DISTINCT FROM f.part
),
usual AS (
  SELECT part, fact, value, count(*) AS agreeing, sum(count(*)) OVER (PARTITION BY part, fact) AS hosts
  FROM everything
  GROUP BY part, fact, value
  QUALIFY 2 * agreeing > hosts AND hosts >= 3
)
SELECT e.host, e.part, e.fact, e.value, u.value AS usual, u.hosts::BIGINT AS hosts
FROM everything e
JOIN usual u ON u.fact = e.fact AND u.part IS NOT DISTINCT FROM e.part
WHERE e.value IS DISTINCT FROM u.value
ORDER BY e.host, e.part, e.fact;
