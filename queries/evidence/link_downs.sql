-- question: When did logs say that a port went down?
-- Kernel messages, NCCL's warnings, and status commands that found a port down that was up before.
WITH told AS (
  SELECT host_name(host) AS device, part AS port, ts, 'kernel' AS source
  FROM events WHERE kind = 'link_down' AND ts IS NOT NULL
  UNION
  SELECT host_name(host), nic, ts, 'NCCL'
  FROM nccl_events
  WHERE kind = 'async_event' AND nic IS NOT NULL AND ts IS NOT NULL AND text ILIKE 'port err%'
  UNION
  SELECT device, port, ts, 'status'
  FROM (
    SELECT device, port, ts, oper, lag(oper) OVER (PARTITION BY device, port, format ORDER BY ts) AS before
    FROM named_status WHERE ts IS NOT NULL AND oper IS NOT NULL
  ) WHERE oper = 'down' AND before = 'up'
),
placed AS (
  SELECT t.device, t.ts, t.source, coalesce(n.host, p.owner, t.device) AS owner,
    coalesce(n.nic, p.part, t.port) AS part,
    n.nic IS NOT NULL OR t.source <> 'status' OR coalesce(p.is_nic, false) AS is_nic
  FROM told t
  LEFT JOIN nic_names n ON n.host = host_name(t.device) AND n.name = t.port
  LEFT JOIN port_parts p ON p.device = t.device AND p.port = t.port
)
SELECT DISTINCT d.device, d.owner, d.part, d.is_nic, e.far_owner, e.far_part, e.far_is_nic, d.ts, d.source
FROM placed d LEFT JOIN cable_ends e ON e.owner = d.owner AND e.part = d.part
ORDER BY d.owner, d.part, d.ts
