-- question: How often did NCCL say that the port of a NIC went down, in logs without times?
-- Each process that uses the NIC says it: the one that says it most often counts.
WITH told AS (
  SELECT host_name(host) AS host, nic, pid, count(*) AS times
  FROM nccl_events
  WHERE kind = 'async_event' AND nic IS NOT NULL AND ts IS NULL AND text ILIKE 'port err%'
  GROUP BY host_name(host), nic, pid
),
placed AS (
  SELECT coalesce(n.host, t.host) AS owner, coalesce(n.nic, t.nic) AS part, max(t.times) AS times
  FROM told t LEFT JOIN nic_names n ON n.host = t.host AND n.name = t.nic
  GROUP BY ALL
)
SELECT p.owner, p.part, true AS is_nic, e.far_owner, e.far_part, e.far_is_nic,
  NULL::TIMESTAMP AS ts_before, NULL::TIMESTAMP AS ts, p.times::DOUBLE AS risen, 'NCCL' AS source
FROM placed p LEFT JOIN cable_ends e ON e.owner = p.owner AND e.part = p.part
ORDER BY p.owner, p.part
