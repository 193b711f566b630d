-- question: Which switch marks far more than its peers, on most ports that carry traffic?
-- One port that marks is where more arrives than it can send on; a switch that marks on all has lower thresholds. A
-- row is an interval of a switch. `usual` is the median over the run of what its peers mark, of at least three; `ports`
-- are those that mark `$times` as often as a usual port of a peer, `of_ports` all that count marks and send. `related`
-- are the hosts below it and its links to other switches.
WITH marked AS (
  SELECT device AS switch, port, ts_before, ts, marked_per_second AS per_second FROM evidence.port_marks
),
usual_ports AS (
  SELECT switch, port, avg(per_second) AS per_second FROM marked GROUP BY switch, port
),
peers AS (
  SELECT s.switch, count(DISTINCT p.switch) AS peers, median(p.per_second) AS usual
  FROM (SELECT DISTINCT switch FROM marked) s
  JOIN usual_ports p ON p.switch <> s.switch
    AND regexp_replace(p.switch, '\d+', '#', 'g') = regexp_replace(s.switch, '\d+', '#', 'g')
  WHERE p.per_second > 0
  GROUP BY s.switch
),
busy AS (
  SELECT * FROM marked
  QUALIFY max(per_second) OVER (PARTITION BY switch, port) > 0
),
counted AS (
  SELECT b.switch, b.ts_before, b.ts, sum(b.per_second) AS marks, p.usual, p.peers,
    count(*) FILTER (b.per_second >= $times * p.usual) AS ports, count(*) AS of_ports
  FROM busy b JOIN peers p USING (switch)
  GROUP BY b.switch, b.ts_before, b.ts, p.usual, p.peers
)
SELECT c.*, c.marks / c.of_ports AS marks_a_port, e.min_threshold_bytes AS min_bytes, o.usual_bytes, b.related
FROM counted c
LEFT JOIN (
  SELECT owner AS switch, list(DISTINCT CASE
      WHEN far_is_nic THEN {'type': 'host', 'host': far_owner, 'nic': NULL, 'switch': NULL, 'port': NULL}
      ELSE {'type': 'port', 'host': NULL, 'nic': NULL, 'switch': owner, 'port': part} END) AS related
  FROM evidence.cable_ends WHERE NOT is_nic GROUP BY owner
) b USING (switch)
LEFT JOIN (SELECT device, min(min_threshold_bytes) AS min_threshold_bytes FROM evidence.ecn_settings GROUP BY device) e
  ON e.device = c.switch
LEFT JOIN (
  SELECT s.switch, median(x.min_threshold_bytes) AS usual_bytes
  FROM (SELECT DISTINCT switch FROM counted) s JOIN evidence.ecn_settings x ON x.device <> s.switch
  GROUP BY s.switch
) o USING (switch)
WHERE c.of_ports >= $fewest_ports AND c.peers >= $fewest_peers
ORDER BY c.switch, c.ts
