-- question: Which hosts received more in the RDMA class than they sent, and how often were NICs told of congestion?
-- `cnp_per_second` is of the median NIC of all hosts meanwhile, `example_nic` one of the host's NICs.
WITH marks AS (
  SELECT w.ts_before, w.ts, median(m.cnp_per_second) AS cnp_per_second
  FROM (SELECT DISTINCT ts_before, ts FROM evidence.host_balance) w
  JOIN evidence.nic_marks m
    ON m.ts_before + (m.ts - m.ts_before) / 2 BETWEEN w.ts_before AND w.ts
  GROUP BY ALL
),
named AS (
  SELECT host, min(nic) AS example_nic FROM evidence.nic_ports GROUP BY host
)
SELECT h.host, h.ts_before, h.ts, h.seconds, h.nics, h.received, h.sent, h.receiving_more,
  8e-9 * (h.received - h.sent) / h.seconds AS extra_gbps, m.cnp_per_second,
  coalesce(n.example_nic, 'DEVICE') AS example_nic,
  (SELECT count(DISTINCT host) FROM evidence.host_balance) AS all_hosts
FROM evidence.host_balance h
LEFT JOIN marks m USING (ts_before, ts)
LEFT JOIN named n USING (host)
ORDER BY h.host, h.ts
