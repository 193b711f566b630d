-- question: How evenly did each uplink group that cables tell send in each interval?
SELECT device, uplink_group, inferred, ts_before, ts, seconds, sent, tx_gbps, capacity_gbps, ports, loads
FROM uplink_intervals
WHERE NOT coalesce(gap, false) AND links = members AND links >= 2 AND sent > 0
ORDER BY uplink_group, ts
