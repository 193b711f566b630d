-- question: In which intervals did a NIC pause its switch port, and was it paused itself?
-- As the NIC tells it, and as the switch port at the other end of its cable does. `frame_us` is how
-- long a frame paused where a device counts both frames and time. Below 100 frames a second the
-- pauses are under 1 % of the time (84 us a frame at 400 Gb/s): those intervals are left out.
-- A switch port whose cable no log tells may lead to a NIC, unless another switch sent as many pauses
-- as it received: then that is the other end. Its `host` and `nic` are null; where the cable leads to
-- what is no switch, they are those of a host that no job uses. `counted` is the number
-- of ports whose pauses the same kind of device counts, quiet ones included; `read_until` is when its device was read last.
-- `is_joined`: no log tells the cable between NIC and port, but both count as many pauses.
WITH ends AS (
  SELECT host, nic, leaf AS switch, leaf_port AS port FROM nic_ports
),
switches AS (
  SELECT device FROM uplink_groups UNION SELECT remote_device FROM uplink_groups
),
lengths AS (
  SELECT sum(tx_share * seconds) / nullif(sum(tx_frames_per_second * seconds), 0) * 1e6 AS frame_us
  FROM pause_intervals WHERE tx_share IS NOT NULL AND tx_frames_per_second >= 100
),
untold AS (
  SELECT p.device, p.port, sum(p.rx_frames_per_second * p.seconds) AS received,
    sum(p.tx_frames_per_second * p.seconds) AS sent
  FROM pause_intervals p
  WHERE host_name(p.device) NOT IN (FROM known_hosts)
    AND NOT EXISTS (
      SELECT 1 FROM cable_ends c WHERE c.owner = p.device AND c.part = p.port AND c.far_owner IN (FROM switches)
    )
    AND NOT EXISTS (SELECT 1 FROM ends e WHERE e.switch = p.device AND e.port = p.port)
  GROUP BY p.device, p.port
),
edge AS (
  SELECT u.device, u.port FROM untold u
  WHERE u.received > 0 AND NOT EXISTS (
    SELECT 1 FROM untold o
    WHERE o.device <> u.device AND o.sent BETWEEN 0.95 * u.received AND 1.05 * u.received
  )
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
  UNION ALL
  SELECT 'switch', p.device, host_name(c.far_owner), c.far_part, p.device, p.port, p.ts_before, p.ts,
    p.seconds, p.rx_frames_per_second, p.rx_share, p.tx_frames_per_second
  FROM pause_intervals p JOIN edge e ON e.device = p.device AND e.port = p.port
  LEFT JOIN cable_ends c ON c.owner = p.device AND c.part = p.port
),
-- A NIC without a known cable and the one port without one that counts as many pauses are its two ends.
ends_apart AS (
  SELECT host, nic, switch, port, sum(frames_per_second * seconds) AS frames, min(ts_before) AS begins, max(ts) AS ends
  FROM seen WHERE (host IS NULL) <> (switch IS NULL) AND frames_per_second >= 100
  GROUP BY host, nic, switch, port
),
joined AS (
  SELECT n.host, n.nic, p.switch, p.port
  FROM ends_apart n JOIN ends_apart p
    ON n.host IS NOT NULL AND p.host IS NULL AND p.frames BETWEEN 0.95 * n.frames AND 1.05 * n.frames
    AND n.begins < p.ends AND p.begins < n.ends
  QUALIFY count(*) OVER (PARTITION BY n.host, n.nic) = 1 AND count(*) OVER (PARTITION BY p.switch, p.port) = 1
),
placed AS (
  SELECT s.* REPLACE (
    coalesce(s.host, p.host) AS host, coalesce(s.nic, p.nic) AS nic,
    coalesce(s.switch, n.switch) AS switch, coalesce(s.port, n.port) AS port
  ), coalesce(n.port, p.port) IS NOT NULL AS is_joined
  FROM seen s
  LEFT JOIN joined n ON s.switch IS NULL AND n.host = s.host AND n.nic = s.nic
  LEFT JOIN joined p ON s.host IS NULL AND p.switch = s.switch AND p.port = s.port
)
SELECT s.*, l.frame_us, v.speed_gbps, o.counted, r.read_until
FROM placed s
JOIN (SELECT device, max(ts) AS read_until FROM pause_intervals GROUP BY device) r USING (device)
CROSS JOIN lengths l
JOIN (
  SELECT CASE WHEN host_name(device) IN (SELECT host FROM training_hosts) THEN 'nic'
    ELSE 'switch' END AS seen_at, count(DISTINCT (device, port)) AS counted
  FROM pause_intervals GROUP BY ALL
) o USING (seen_at)
LEFT JOIN told_speeds v ON v.device = s.switch AND v.port = s.port
WHERE s.frames_per_second >= 100 OR s.share >= 0.01
ORDER BY s.host, s.nic, s.switch, s.port, s.seen_at, s.ts
