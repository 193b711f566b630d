-- question: How often did each switch pause the worst of its neighbours, as it tells or the NICs below it?
-- `switch` is null where no log tells the leaf of the NICs that were paused.
WITH told AS (
  SELECT p.device AS switch, p.device, p.ts_before, p.ts, p.tx_frames_per_second AS frames_per_second,
    1 AS preference
  FROM pause_intervals p
  WHERE host_name(p.device) NOT IN (FROM known_hosts)
  UNION ALL
  SELECT n.leaf, p.device, p.ts_before, p.ts, p.rx_frames_per_second, 2
  FROM pause_intervals p JOIN nic_ends n ON n.host = host_name(p.device) AND n.name = p.port
),
best AS (
  SELECT switch, min(preference) AS preference FROM told
  WHERE frames_per_second IS NOT NULL GROUP BY switch
)
SELECT t.switch, t.device, t.ts_before, t.ts, max(t.frames_per_second) AS frames_per_second
FROM told t JOIN best b ON b.switch IS NOT DISTINCT FROM t.switch AND b.preference = t.preference
WHERE t.frames_per_second IS NOT NULL
GROUP BY t.switch, t.device, t.ts_before, t.ts
ORDER BY t.switch, t.device, t.ts
