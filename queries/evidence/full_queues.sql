-- question: At which ports to NICs does the queue fill, and at few others?
-- Packets are marked in the queue of the port that more arrives for than it can send (RFC 3168); the NIC behind it
-- tells their senders by CNPs. A row is an interval with `$mark_rate` marks, or CNPs sent, a second and `$mark_ratio` times
-- the median of all; of those that count any at most `$most` do so. `counted`: a log tells the bytes of the port. CNPs
-- tell of no port to a NIC while a link between switches fills that does not lead to the NIC's leaf.
WITH marked AS (
  SELECT 'marks' AS sign, n.host, n.nic, m.device AS switch, m.port, m.ts_before, m.ts, m.marked_per_second AS rate,
    (SELECT median(marked_per_second) FROM evidence.port_marks) AS usual
  FROM evidence.port_marks m
  SEMI JOIN ports_to_nics t USING (device, port)
  LEFT JOIN nic_ports n ON n.leaf = m.device AND n.leaf_port = m.port
  UNION ALL
  SELECT 'CNPs', m.host, m.nic, n.leaf, n.leaf_port, m.ts_before, m.ts, m.cnp_per_second,
    (SELECT median(cnp_per_second) FROM evidence.nic_marks)
  FROM evidence.nic_marks m
  LEFT JOIN nic_ports n USING (host, nic)
  WHERE m.cnp_per_second IS NOT NULL
    AND NOT EXISTS (
      FROM evidence.full_uplinks u
      WHERE u.far_owner IS DISTINCT FROM n.leaf AND u.ts > m.ts_before AND u.ts_before < m.ts
    )
),
named AS (
  SELECT *, coalesce(host || ' ' || nic, switch || ' ' || port) AS part,
    coalesce(rate >= greatest($mark_rate, $mark_ratio * usual), false) AS is_full
  FROM marked
),
few AS (
  SELECT sign FROM named GROUP BY sign
  HAVING count(DISTINCT part) FILTER (is_full) <= $most * count(DISTINCT part)
)
SELECT f.sign, f.part, f.host, f.nic, f.switch, f.port, f.ts_before, f.ts, f.rate,
  EXISTS (FROM nic_bytes b WHERE b.host = f.host AND b.nic = f.nic AND b.received IS NOT NULL)
    OR EXISTS (FROM port_traffic b WHERE b.device = f.switch AND b.port = f.port AND b.tx_bytes IS NOT NULL) AS counted
FROM named f SEMI JOIN few USING (sign)
WHERE f.is_full
ORDER BY f.part, f.sign, f.ts
