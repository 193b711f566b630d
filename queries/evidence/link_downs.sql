-- question: When did logs say that a port went down?
-- Kernel messages of hosts, NCCL's warnings, logs of other devices (some switches log as a kernel does), what a fabric
-- manager counted, and status commands that found a port down that was up before. A port that a person takes down is none, nor is one that is
-- made of others. `ts_before` is when a status last found the port up, or `ts`.
WITH told AS (
  SELECT host_name(host) AS device, part AS port, ts AS ts_before, ts,
    CASE WHEN regexp_matches(part, '^(swp[0-9]|[A-Z])')
      OR (EXISTS (FROM training_hosts) AND host_name(host) NOT IN (FROM known_hosts))
      THEN 'device log' ELSE 'kernel' END AS source
  FROM events WHERE kind = 'link_down' AND ts IS NOT NULL
  UNION
  SELECT host_name(host), nic, ts, ts, 'NCCL'
  FROM nccl_events
  WHERE kind = 'async_event' AND nic IS NOT NULL AND ts IS NOT NULL AND text ILIKE 'port err%'
  UNION
  SELECT d.host, d.part, d.ts, d.ts, 'device log'
  FROM events d
  WHERE d.kind = 'port_down' AND d.ts IS NOT NULL
    AND NOT regexp_matches(d.part, '^(vlan|port-channel|ae\d|bundle|loopback|lo\d|irb|management|mgmt|em\d|fxp|tunnel)', 'i')
    AND NOT EXISTS (
      FROM events h WHERE h.kind = 'port_disabled' AND h.host = d.host AND h.part = d.part
        AND abs(epoch(h.ts) - epoch(d.ts)) <= 5
    )
  UNION
  -- A fabric manager saw the counter rise when it asked: no log to the second.
  SELECT host_name(host), part, ts, ts, 'status' FROM events WHERE kind = 'link_downs_counted' AND ts IS NOT NULL
  UNION
  SELECT device, port, ts_before, ts, 'status'
  FROM (
    SELECT device, port, lag(ts) OVER w AS ts_before, ts, oper, lag(oper) OVER w AS before
    FROM named_status WHERE ts IS NOT NULL AND oper IS NOT NULL
    WINDOW w AS (PARTITION BY device, port, format ORDER BY ts)
  ) WHERE oper = 'down' AND before = 'up'
),
placed AS (
  SELECT t.device, t.ts_before, t.ts, t.source, coalesce(n.host, p.owner, t.device) AS owner,
    coalesce(n.nic, p.part, t.port) AS part,
    n.nic IS NOT NULL OR coalesce(p.is_nic, t.source IN ('kernel', 'NCCL')) AS is_nic
  FROM told t
  LEFT JOIN nic_names n ON n.host = host_name(t.device) AND n.name = t.port
  LEFT JOIN port_parts p ON host_name(p.device) = host_name(t.device) AND p.port = t.port
)
SELECT DISTINCT d.device, d.owner, d.part, d.is_nic, e.far_owner, e.far_part, e.far_is_nic, d.ts_before, d.ts,
  d.source
FROM placed d LEFT JOIN cable_ends e ON e.owner = d.owner AND e.part = d.part
ORDER BY d.owner, d.part, d.ts
