-- question: How many packets did each switch port mark, over all its queues?
-- Of several sources of one port and interval the one that counts most is taken.
SELECT device, port, ts_before, ts, max(marked_per_second) AS marked_per_second
FROM (
  SELECT device, port, ts_before, ts, sum(ecn_marked_packets) / any_value(seconds) AS marked_per_second
  FROM priority_rates
  WHERE ecn_marked_packets IS NOT NULL AND queue IS NOT NULL AND seconds > 0
  GROUP BY format, device, port, ts_before, ts
)
GROUP BY device, port, ts_before, ts
ORDER BY device, port, ts
