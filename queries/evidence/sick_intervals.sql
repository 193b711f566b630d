-- question: In which intervals did which port count errors, drops, lost links or retransmissions?
-- Rises only; of several sources of one counter the one that saw most (the others have stopped at
-- their highest value). `owner` and `part` are host and NIC, or switch and port; `far_...` is the
-- other end of the cable. Of the drops of queues only those of the queue that carries most of the
-- device's traffic count: other classes may drop.
WITH busiest AS (
  SELECT device, format, arg_max(class, tx_bytes) AS class
  FROM (
    SELECT device, format, coalesce(queue, priority::VARCHAR) AS class, sum(tx_bytes) AS tx_bytes
    FROM priority_rates WHERE tx_bytes > 0 GROUP BY ALL
  ) GROUP BY device, format
),
rose AS (
  SELECT * FROM port_rates
  WHERE greatest(
    *COLUMNS(lambda c: counter_family(c) IN ('wire', 'link', 'drop', 'resend'))
  ) > 0
),
rises AS (
  SELECT device, port, format, ts_before, ts, seconds, rx_bytes, counter, risen
  FROM rose UNPIVOT (risen FOR counter IN (
    COLUMNS(lambda c: counter_family(c) IN ('wire', 'link', 'drop', 'resend'))
  ))
  UNION ALL
  SELECT device, port, format, ts_before, ts, seconds, NULL, counter, risen
  FROM (
    SELECT device, port, format, ts_before, ts, seconds,
      sum(drop_packets)::BIGINT AS drop_packets, sum(pfcwd_detected)::BIGINT AS pfcwd_detected
    FROM priority_rates LEFT JOIN busiest b USING (device, format)
    WHERE (drop_packets > 0 OR pfcwd_detected > 0)
      AND coalesce(b.class = coalesce(queue, priority::VARCHAR), true)
    GROUP BY ALL
  ) UNPIVOT (risen FOR counter IN (drop_packets, pfcwd_detected))
),
placed AS (
  SELECT r.*, coalesce(p.owner, r.device) AS owner, coalesce(p.part, r.port) AS part,
    coalesce(p.is_nic, false) AS is_nic,
    sum(r.risen) OVER (PARTITION BY p.owner, p.part, r.counter, r.format) AS seen
  FROM rises r LEFT JOIN port_parts p ON p.device = r.device AND p.port = r.port
  WHERE r.risen > 0
)
SELECT d.device, d.owner, d.part, d.is_nic, e.far_owner, e.far_part, e.far_is_nic, d.format, d.counter,
  d.ts_before, d.ts, d.seconds, d.risen::DOUBLE AS risen, d.rx_bytes
FROM placed d LEFT JOIN cable_ends e ON e.owner = d.owner AND e.part = d.part
QUALIFY dense_rank() OVER (PARTITION BY d.owner, d.part, d.counter ORDER BY d.seen DESC, d.format) = 1
ORDER BY d.owner, d.part, d.counter, d.ts
