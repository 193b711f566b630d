-- question: Which NICs received more than the others read at the same moment?
-- `ratio` is over the median of the snapshot (all NICs of a host, or all NIC ports of a leaf), so it
-- depends on no clock and no number of steps. NICs within a tenth of the median are left out.
WITH compared AS (
  SELECT *, median(received) OVER w AS usual, count(*) OVER w AS peers
  FROM nic_bytes
  WHERE received IS NOT NULL
  WINDOW w AS (PARTITION BY format, snapshot)
),
excess AS (
  SELECT *, received / nullif(usual, 0) AS ratio, 8e-9 * (received - usual) / seconds AS excess_gbps
  FROM compared
  WHERE peers >= 4
),
speeds AS (
  SELECT device, port, max(speed_gbps) AS speed_gbps FROM named_status GROUP BY device, port
)
SELECT e.seen_at, e.format, e.device, e.host, e.nic, e.switch, e.port, e.ts_before, e.ts, e.seconds,
  e.peers, e.ratio, e.excess_gbps, 8e-9 * e.received / e.seconds AS received_gbps, v.speed_gbps,
  count(*) OVER (PARTITION BY e.format, e.snapshot) AS exceeding
FROM excess e
LEFT JOIN speeds v ON v.device = e.switch AND v.port = e.port
WHERE e.ratio > 1.1
ORDER BY e.host, e.nic, e.format, e.ts
