-- question: How evenly did each uplink group send, in windows as short as its counters allow?
-- Where all ports were read at one moment every interval counts; else the minutes they are summed to.
SELECT device, uplink_group, ts_before, ts, seconds, sent, tx_gbps, capacity_gbps, ports, loads
FROM uplink_snapshots
WHERE sent > 0 AND NOT coalesce(gap, false)
UNION ALL
SELECT device, uplink_group, ts_before, ts, seconds, sent, tx_gbps, capacity_gbps, ports, loads
FROM uplink_intervals
WHERE sent > 0 AND NOT coalesce(gap, false) AND links = members AND links >= 2
  AND uplink_group NOT IN (SELECT uplink_group FROM uplink_snapshots)
ORDER BY uplink_group, ts
