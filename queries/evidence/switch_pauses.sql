-- question: How often did each leaf pause the NICs below it, and how long were they paused?
-- As the NICs tell it where they do, as the leaf's ports do elsewhere.
WITH told AS (
  SELECT n.leaf, p.device, p.ts_before, p.ts, p.seconds, n.host, n.nic,
    p.rx_frames_per_second AS frames_per_second, p.rx_share AS share, 1 AS preference
  FROM pause_intervals p JOIN nic_ends n ON n.host = host_name(p.device) AND n.name = p.port
  WHERE n.leaf IS NOT NULL
  UNION ALL
  SELECT n.leaf, p.device, p.ts_before, p.ts, p.seconds, n.host, n.nic,
    p.tx_frames_per_second, p.tx_share, 2
  FROM pause_intervals p
  JOIN nic_ports n
    ON n.leaf = p.device AND n.leaf_port = p.port
),
best AS (
  SELECT leaf, min(preference) AS preference FROM told GROUP BY leaf
)
SELECT leaf, device, ts_before, ts, any_value(seconds) AS seconds, count(*) AS nics,
  avg(frames_per_second) AS frames_per_second, avg(share) AS share
FROM told SEMI JOIN best USING (leaf, preference)
GROUP BY leaf, device, ts_before, ts
ORDER BY leaf, ts
