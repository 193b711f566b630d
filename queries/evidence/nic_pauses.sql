-- question: In which intervals did a NIC pause its switch port, and was it paused itself?
-- As the NIC tells it, and as the switch port at the other end of its cable does. `frame_us` is how
-- long a frame paused where a device counts both frames and time. Below 100 frames a second the
-- pauses are under 1 % of the time (84 us a frame at 400 Gb/s): those intervals are left out.
WITH ends AS (
  SELECT DISTINCT host, nic, leaf AS switch, leaf_port AS port FROM nic_ends
),
lengths AS (
  SELECT sum(tx_share * seconds) / nullif(sum(tx_frames_per_second * seconds), 0) * 1e6 AS frame_us
  FROM pause_intervals WHERE tx_share IS NOT NULL AND tx_frames_per_second >= 100
),
speeds AS (
  SELECT device, port, max(speed_gbps) AS speed_gbps FROM named_status GROUP BY device, port
),
seen AS (
  SELECT 'nic' AS seen_at, p.device, t.host, coalesce(n.nic, p.port) AS nic, n.leaf AS switch,
    n.leaf_port AS port, p.ts_before, p.ts, p.seconds,
    p.tx_frames_per_second AS frames_per_second, p.tx_share AS share,
    p.rx_frames_per_second AS back_frames_per_second
  FROM pause_intervals p JOIN training_hosts t ON t.host = host_name(p.device)
  LEFT JOIN nic_ends n ON n.host = t.host AND n.name = p.port
  UNION ALL
  SELECT 'switch', p.device, e.host, e.nic, e.switch, e.port, p.ts_before, p.ts, p.seconds,
    p.rx_frames_per_second, p.rx_share, p.tx_frames_per_second
  FROM pause_intervals p JOIN ends e ON e.switch = p.device AND e.port = p.port
)
SELECT s.*, l.frame_us, v.speed_gbps
FROM seen s
CROSS JOIN lengths l
LEFT JOIN speeds v ON v.device = s.switch AND v.port = s.port
WHERE s.frames_per_second >= 100 OR s.share >= 0.01
ORDER BY s.host, s.nic, s.seen_at, s.ts
