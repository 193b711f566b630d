-- question: How many packets did each switch port mark, over all its queues?
FROM mark_intervals
ORDER BY device, port, ts
