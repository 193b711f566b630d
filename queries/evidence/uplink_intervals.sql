-- question: How evenly did each group of parallel links send in each interval?
-- `read_until` is when the group was read last, though it sent nothing then.
SELECT job, device, uplink_group, inferred, ts_before, ts, seconds, links, members, sent, tx_gbps,
  capacity_gbps, ports, loads, receipts, imbalance, jain, top_half_share, read_until
FROM (
  SELECT *, max(ts) OVER (PARTITION BY uplink_group) AS read_until
  FROM uplink_intervals
  WHERE NOT coalesce(gap, false) AND links = members AND links >= 2
)
WHERE sent > 0
ORDER BY uplink_group, ts
