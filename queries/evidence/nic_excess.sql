-- question: Which NICs, or ports of switches without a known cable, received more than the others read at the same moment?
-- `ratio` is over the median of the snapshot (all NICs of a host, all NIC ports of a leaf, or the ports of a
-- switch that receive alike), so it depends on no clock and no number of steps. NICs of which fewer than
-- four are read at once are compared over spans of at least a minute, two intervals and ten steps, which
-- leave clocks and steps little say. NICs within a tenth of the median are left out; `exceeding` counts the
-- others of a snapshot, `as_much` those that exceed it by half as much as this one or more. What a switch sends
-- by a port is what is received there.
WITH steps AS (
  SELECT max(usual) AS ms FROM (
    SELECT median(step_time_ms) AS usual FROM evidence.job_steps GROUP BY job
  )
),
known AS (
  SELECT format, device, device AS snapshot, host, nic, switch, port, seen_at, ts_before, ts, seconds,
    received
  FROM nic_bytes
  UNION ALL
  SELECT format, device, uplink_group, NULL, NULL, device, port, 'switch', ts_before, ts, seconds, tx_bytes
  FROM uplink_ports WHERE inferred
  UNION ALL
  SELECT t.format, t.device, t.device || ' to NICs', NULL, NULL, t.device, t.port, 'switch', t.ts_before, t.ts, t.seconds,
    t.tx_bytes
  FROM port_traffic t JOIN (
    FROM ports_to_nics p ANTI JOIN cable_ends c ON c.owner = p.device AND c.part = p.port
  ) p USING (device, port)
),
counted AS (
  SELECT k.*, s.few
  FROM known k JOIN (
    SELECT format, snapshot, ts, count(*) < 4 AS few FROM known
    WHERE received IS NOT NULL AND seconds > 0 GROUP BY format, snapshot, ts
  ) s USING (format, snapshot, ts)
  WHERE received IS NOT NULL AND seconds > 0
),
spans AS (
  SELECT format,
    (1e6 * greatest(60, 2 * median(seconds), (SELECT ms FROM steps) / 100))::BIGINT AS us
  FROM counted WHERE few GROUP BY format
),
-- What is read at one moment is of one `reader`; NICs that are read few at once are compared over all.
moments AS (
  SELECT format, host, nic, switch, port, reader, moment, any_value(seen_at) AS seen_at,
    any_value(device) AS device, min(ts_before) AS ts_before, max(ts) AS ts, sum(seconds) AS seconds,
    sum(received) AS received
  FROM (
    SELECT c.*, CASE WHEN few AND host IS NOT NULL THEN '' ELSE snapshot END AS reader,
      CASE WHEN few THEN make_timestamp((epoch_us(ts_before) + epoch_us(ts)) // 2 // s.us * s.us)
        ELSE ts END AS moment
    FROM counted c LEFT JOIN spans s USING (format)
  )
  GROUP BY format, host, nic, switch, port, reader, moment
),
usual AS (
  SELECT format, reader, moment, median(received / seconds) AS usual, count(*) AS peers
  FROM moments GROUP BY format, reader, moment HAVING count(*) >= 4
),
excess AS (
  SELECT m.*, u.peers, received / seconds / nullif(usual, 0) AS ratio,
    8e-9 * (received / seconds - usual) AS excess_gbps
  FROM moments m JOIN usual u USING (format, reader, moment)
)
SELECT e.seen_at, e.format, e.device, e.host, e.nic, e.switch, e.port, e.ts_before, e.ts, e.seconds,
  e.peers, e.ratio, e.excess_gbps, 8e-9 * e.received / e.seconds AS received_gbps, v.speed_gbps,
  count(*) OVER w AS exceeding, len(list_filter(list(e.excess_gbps) OVER w, lambda gbps: gbps >= e.excess_gbps / 2)) AS as_much
FROM excess e
LEFT JOIN told_speeds v ON v.device = e.switch AND v.port = e.port
WHERE e.ratio > 1.1
WINDOW w AS (PARTITION BY e.format, e.reader, e.moment)
ORDER BY e.host, e.nic, e.switch, e.port, e.format, e.ts
