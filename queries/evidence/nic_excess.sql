-- question: Which NICs received more than the others read at the same moment?
-- `ratio` is over the median of the snapshot (all NICs of a host, or all NIC ports of a leaf), so it
-- depends on no clock and no number of steps. NICs of which fewer than four are read at once are compared
-- over spans of at least a minute, two intervals and ten steps, which leave clocks and steps little say.
-- NICs within a tenth of the median are left out.
WITH steps AS (
  SELECT max(usual) AS ms FROM (
    SELECT median(step_time_ms) AS usual FROM evidence.job_steps GROUP BY job
  )
),
counted AS (
  SELECT *, count(*) OVER (PARTITION BY format, snapshot) < 4 AS few
  FROM nic_bytes
  WHERE received IS NOT NULL AND seconds > 0
),
spans AS (
  SELECT format,
    (1e6 * greatest(60, 2 * median(seconds), (SELECT ms FROM steps) / 100))::BIGINT AS us
  FROM counted WHERE few GROUP BY format
),
moments AS (
  SELECT format, host, nic, any_value(seen_at) AS seen_at, any_value(device) AS device,
    any_value(switch) AS switch, any_value(port) AS port, min(ts_before) AS ts_before, max(ts) AS ts,
    sum(seconds) AS seconds, sum(received) AS received, moment
  FROM (
    SELECT c.*, CASE WHEN few
      THEN ((epoch_us(ts_before) + epoch_us(ts)) // 2 // s.us)::VARCHAR ELSE snapshot END AS moment
    FROM counted c LEFT JOIN spans s USING (format)
  )
  GROUP BY format, host, nic, moment
),
compared AS (
  SELECT *, median(received / seconds) OVER w AS usual, count(*) OVER w AS peers
  FROM moments
  WINDOW w AS (PARTITION BY format, moment)
),
excess AS (
  SELECT *, received / seconds / nullif(usual, 0) AS ratio,
    8e-9 * (received / seconds - usual) AS excess_gbps
  FROM compared
  WHERE peers >= 4
),
speeds AS (
  SELECT device, port, max(speed_gbps) AS speed_gbps FROM named_status GROUP BY device, port
)
SELECT e.seen_at, e.format, e.device, e.host, e.nic, e.switch, e.port, e.ts_before, e.ts, e.seconds,
  e.peers, e.ratio, e.excess_gbps, 8e-9 * e.received / e.seconds AS received_gbps, v.speed_gbps,
  count(*) OVER (PARTITION BY e.format, e.moment) AS exceeding
FROM excess e
LEFT JOIN speeds v ON v.device = e.switch AND v.port = e.port
WHERE e.ratio > 1.1
ORDER BY e.host, e.nic, e.format, e.ts
