-- question: How often did each leaf pause its NICs, and how often were these told of congestion meanwhile?
-- `storm` says that a NIC paused its switch meanwhile: then no queue of the leaf is the cause.
-- `min_threshold_bytes` is the highest at which a queue of the leaf begins to mark,
-- `ecn_off` that all its settings of ECN say off.
WITH marks AS (
  SELECT switch, ts_before + (ts - ts_before) / 2 AS moment, cnp_per_second
  FROM evidence.nic_marks WHERE cnp_per_second IS NOT NULL
),
told AS (
  SELECT p.leaf, p.ts_before, p.ts, avg(m.cnp_per_second) AS cnp_per_second
  FROM evidence.switch_pauses p
  JOIN marks m ON m.switch = p.leaf AND m.moment > p.ts_before AND m.moment <= p.ts
  GROUP BY ALL
),
storms AS (
  SELECT DISTINCT p.ts_before, p.ts
  FROM (SELECT DISTINCT ts_before, ts FROM evidence.switch_pauses) p
  JOIN evidence.nic_pauses n
    ON p.ts_before + (p.ts - p.ts_before) / 2 BETWEEN n.ts_before AND n.ts
),
settings AS (
  SELECT device AS leaf, max(min_threshold_bytes) AS min_threshold_bytes
  FROM evidence.ecn_settings GROUP BY device
),
ecn AS (
  SELECT device AS leaf,
    bool_and(lower(value) IN ('off', 'ecn_none', 'none', 'disable', 'disabled', 'false')) AS ecn_off
  FROM switch_settings WHERE name = 'ecn' AND value IS NOT NULL GROUP BY device
),
below AS (
  SELECT leaf, list({'type': 'host', 'host': host} ORDER BY host) AS hosts
  FROM evidence.leaf_hosts GROUP BY leaf
)
SELECT p.leaf AS switch, p.ts_before, p.ts, p.frames_per_second, t.cnp_per_second,
  s.ts IS NOT NULL AS storm, e.min_threshold_bytes, n.ecn_off, b.hosts AS related,
  (SELECT count(DISTINCT leaf) FROM evidence.switch_pauses) AS all_leaves
FROM evidence.switch_pauses p
LEFT JOIN told t USING (leaf, ts_before, ts)
LEFT JOIN storms s USING (ts_before, ts)
LEFT JOIN settings e USING (leaf)
LEFT JOIN ecn n USING (leaf)
LEFT JOIN below b USING (leaf)
ORDER BY p.leaf, p.ts
