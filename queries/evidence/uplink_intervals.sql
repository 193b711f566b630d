-- question: How evenly did each group of parallel links send in each interval?
SELECT job, device, uplink_group, inferred, ts_before, ts, seconds, links, members, sent, tx_gbps,
  capacity_gbps, ports, loads, imbalance, jain, top_half_share
FROM uplink_intervals
WHERE NOT coalesce(gap, false) AND links = members AND links >= 2 AND sent > 0
ORDER BY uplink_group, ts
