-- question: How often was each host's worst NIC paused by its leaf?
WITH told AS (
  SELECT n.host, p.device, p.ts_before, p.ts, p.seconds, p.rx_frames_per_second AS frames
  FROM pause_intervals p JOIN nic_ends n ON n.host = host_name(p.device) AND n.name = p.port
  UNION ALL
  SELECT c.far_owner, p.device, p.ts_before, p.ts, p.seconds, p.tx_frames_per_second
  FROM pause_intervals p JOIN cable_ends c ON c.owner = p.device AND c.part = p.port AND c.far_is_nic
)
SELECT host, device, ts_before, ts, any_value(seconds) AS seconds, max(frames) AS frames_per_second
FROM told
GROUP BY host, device, ts_before, ts
ORDER BY host, ts
