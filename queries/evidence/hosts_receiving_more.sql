-- question: Which hosts received more in the RDMA class than they sent, and how often were NICs told of congestion?
-- `cnp_per_second` is of the median NIC of all hosts meanwhile, `example_nic` one of the host's NICs.
-- Time is cut into spans as long as an interval: each host is read at moments of its own, and to ask of
-- each what all NICs counted meanwhile would grow with the square of the hosts.
WITH span AS (
  SELECT greatest(1, 1e6 * median(seconds))::BIGINT AS us FROM evidence.host_balance
),
hosts AS (
  SELECT b.*, (epoch_us(ts_before) + epoch_us(ts)) // 2 // us AS span
  FROM evidence.host_balance b, span
),
marks AS (
  SELECT (epoch_us(ts_before) + epoch_us(ts)) // 2 // us AS span,
    median(cnp_per_second) AS cnp_per_second
  FROM evidence.nic_marks, span
  GROUP BY ALL
),
named AS (
  SELECT host, min(nic) AS example_nic FROM evidence.nic_ports GROUP BY host
)
SELECT h.host, h.ts_before, h.ts, h.seconds, h.nics, h.received, h.sent, h.receiving_more,
  8e-9 * (h.received - h.sent) / h.seconds AS extra_gbps, m.cnp_per_second,
  coalesce(n.example_nic, 'DEVICE') AS example_nic,
  (SELECT count(DISTINCT host) FROM evidence.host_balance) AS all_hosts
FROM hosts h
LEFT JOIN marks m USING (span)
LEFT JOIN named n USING (host)
ORDER BY h.host, h.ts
