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
uncabled AS (
  SELECT p.device, p.port
  FROM ports_to_nics p ANTI JOIN cable_ends c ON c.owner = p.device AND c.part = p.port
),
-- By numbers of 64 bits: the names of parts and snapshots, which most rows do not need, take five times as much memory.
known AS (
  SELECT format, hash(device) AS snapshot, hash(host, nic, switch, port) AS part, true AS of_nic, ts_before, ts, seconds,
    received
  FROM nic_bytes
  UNION ALL
  SELECT format, hash(uplink_group), hash(NULL::VARCHAR, NULL::VARCHAR, device, port), false, ts_before, ts, seconds, tx_bytes
  FROM uplink_ports WHERE inferred
  UNION ALL
  SELECT t.format, hash(t.device || ' to NICs'), hash(NULL::VARCHAR, NULL::VARCHAR, t.device, t.port), false, t.ts_before,
    t.ts, t.seconds, t.tx_bytes
  FROM port_traffic t JOIN uncabled USING (device, port)
),
names AS (
  SELECT hash(snapshot) AS snapshot, hash(host, nic, switch, port) AS part, any_value(seen_at) AS seen_at,
    any_value(device) AS device, any_value(host) AS host, any_value(nic) AS nic, any_value(switch) AS switch,
    any_value(port) AS port
  FROM (
    SELECT device AS snapshot, seen_at, device, host, nic, switch, port FROM nic_bytes
    UNION ALL
    SELECT uplink_group, 'switch', device, NULL, NULL, device, port FROM parallel_ports WHERE inferred
    UNION ALL
    SELECT device || ' to NICs', 'switch', device, NULL, NULL, device, port FROM uncabled
  )
  GROUP BY ALL
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
  SELECT format, part, reader, moment, any_value(snapshot) AS snapshot, min(ts_before) AS ts_before, max(ts) AS ts,
    sum(seconds) AS seconds, sum(received) AS received
  FROM (
    SELECT c.*, CASE WHEN few AND of_nic THEN 0 ELSE snapshot END AS reader,
      CASE WHEN few THEN make_timestamp((epoch_us(ts_before) + epoch_us(ts)) // 2 // s.us * s.us)
        ELSE ts END AS moment
    FROM counted c LEFT JOIN spans s USING (format)
  )
  GROUP BY format, part, reader, moment
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
SELECT n.seen_at, e.format, n.device, n.host, n.nic, n.switch, n.port, e.ts_before, e.ts, e.seconds,
  e.peers, e.ratio, e.excess_gbps, 8e-9 * e.received / e.seconds AS received_gbps, v.speed_gbps,
  count(*) OVER (PARTITION BY e.format, e.reader, e.moment) AS exceeding,
  count(*) OVER (
    PARTITION BY e.format, e.reader, e.moment ORDER BY e.excess_gbps DESC
    RANGE BETWEEN UNBOUNDED PRECEDING AND e.excess_gbps / 2 FOLLOWING
  ) AS as_much
FROM excess e
JOIN names n USING (part, snapshot)
LEFT JOIN told_speeds v ON v.device = n.switch AND v.port = n.port
WHERE e.ratio > 1.1
ORDER BY n.host, n.nic, n.switch, n.port, e.format, e.ts
