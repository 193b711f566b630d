-- question: How many packets did each switch port mark, over all its queues?
SELECT device, port, ts_before, ts,
  sum(ecn_marked_packets) / any_value(seconds) AS marked_per_second
FROM priority_rates
WHERE ecn_marked_packets IS NOT NULL AND queue IS NOT NULL AND seconds > 0
GROUP BY device, port, ts_before, ts
ORDER BY device, port, ts
