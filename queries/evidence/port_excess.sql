-- question: Which ports of switches without a known cable send more while their switch pauses or marks than while it does not?
-- Where no log tells what ports lead to, each is compared with itself: with its median rate while no queue of its
-- switch fills (`$pause_rate`; `$mark_rate`, and `$mark_ratio` times what it marks in a calm quarter of the time),
-- times what the other ports send now over theirs then, for the pace of the job moves all alike; where those send a
-- tenth of it, flows took other ways, and so they do after a restart. Of three ports or
-- more that carry a hundredth of the busiest, in two intervals of each kind or more. `stopped` are the pause frames
-- a second that the port received: then it waits for its neighbour, and the full queue is beyond.
WITH rates AS (
  SELECT t.format, t.device, t.port, t.ts_before, t.ts, t.ts_before + (t.ts - t.ts_before) / 2 AS middle,
    t.tx_bytes / t.seconds AS rate
  FROM port_traffic t
  WHERE t.tx_bytes > 0 AND t.seconds > 0 AND NOT coalesce(t.gap, false)
    AND host_name(t.device) NOT IN (FROM known_hosts)
    AND t.device NOT IN (SELECT device FROM device_names WHERE nic IS NOT NULL)
    AND t.device NOT IN (SELECT owner FROM cable_ends WHERE NOT is_nic)
),
-- Minutes before and after the job are neither: the switch sends little then.
snapshots AS (
  SELECT format, device, ts, any_value(middle) AS middle FROM rates GROUP BY format, device, ts
  QUALIFY sum(rate) >= 0.5 * median(sum(rate)) OVER (PARTITION BY format, device)
),
pauses AS (
  SELECT device, ts_before, ts, max(tx_frames_per_second) AS frames
  FROM pause_intervals WHERE tx_frames_per_second IS NOT NULL GROUP BY device, ts_before, ts
),
passed_on AS (
  SELECT s.device, s.ts FROM snapshots s
  SEMI JOIN evidence.pausing_nics n ON n.switch = s.device AND s.middle BETWEEN n.ts_before AND n.ts
),
marks AS (
  SELECT device, ts_before, ts, max(marked_per_second) AS marked
  FROM mark_intervals GROUP BY device, ts_before, ts
),
told AS (
  SELECT s.*, CASE WHEN p.ts >= s.middle THEN p.frames >= $pause_rate END AS pauses
  FROM (FROM snapshots ANTI JOIN passed_on USING (device, ts)) s ASOF LEFT JOIN pauses p ON p.device = s.device AND p.ts_before <= s.middle
),
counted AS (
  SELECT t.*, CASE WHEN m.ts >= t.middle THEN m.marked END AS marked
  FROM told t ASOF LEFT JOIN marks m ON m.device = t.device AND m.ts_before <= t.middle
),
moments AS (
  SELECT format, device, ts, (SELECT count(*) FROM evidence.restarts a WHERE a.ts <= c.middle) AS launch,
    coalesce(pauses, false) OR coalesce(marked >= greatest(
    $mark_rate, $mark_ratio * quantile_cont(marked, 0.25) OVER (PARTITION BY format, device)
  ), false) AS fills
  FROM counted c WHERE pauses IS NOT NULL OR marked IS NOT NULL
),
usual AS (
  SELECT r.format, r.device, r.port, m.launch, median(r.rate) AS rate
  FROM rates r JOIN moments m USING (format, device, ts)
  WHERE NOT m.fills
  GROUP BY r.format, r.device, r.port, m.launch HAVING count(*) >= 2
  QUALIFY median(r.rate) >= 0.01 * max(median(r.rate)) OVER (PARTITION BY r.format, r.device, m.launch)
),
compared AS (
  SELECT r.*, u.rate AS usual, r.rate / u.rate AS factor,
    median(r.rate / u.rate) OVER snapshot AS pace, count(*) OVER snapshot AS peers
  FROM rates r JOIN moments m USING (format, device, ts) JOIN usual u USING (format, device, port, launch)
  WHERE m.fills
  WINDOW snapshot AS (PARTITION BY format, device, ts)
),
excess AS (
  SELECT *, count(*) OVER (PARTITION BY format, device, ts) AS exceeding
  FROM compared WHERE factor > 1.1 * pace AND pace >= 0.1 AND peers >= 3
)
SELECT e.format, e.device AS switch, e.port, e.ts_before, e.ts, e.peers, e.exceeding,
  e.factor / e.pace AS ratio, 8e-9 * (e.rate - e.usual * e.pace) AS excess_gbps, 8e-9 * e.rate AS received_gbps,
  v.speed_gbps, CASE WHEN p.ts >= e.middle THEN p.rx_frames_per_second END AS stopped
FROM excess e
LEFT JOIN told_speeds v USING (device, port)
ASOF LEFT JOIN pause_intervals p ON p.device = e.device AND p.port = e.port AND p.ts_before <= e.middle
ORDER BY switch, e.port, e.format, e.ts
