-- question: Which port from switch to switch marks far more packets than the others, and how many do?
-- Packets are marked in the queue of a port that more arrives for than it can send (RFC 3168). A row is an interval with
-- `$mark_rate` marks a second and `$mark_ratio` times the median of all such ports; at most `$most` of them do so.
WITH marked AS (
  SELECT m.device AS switch, m.port, c.far_owner, m.ts_before, m.ts, m.marked_per_second AS marks
  FROM evidence.port_marks m
  JOIN evidence.cable_ends c ON c.owner = m.device AND c.part = m.port
  WHERE NOT c.is_nic AND NOT c.far_is_nic
),
usual AS (
  SELECT median(marks) AS usual, count(DISTINCT (switch, port)) AS ports FROM marked
),
full_ones AS (
  SELECT m.*, u.usual, u.ports
  FROM marked m CROSS JOIN usual u
  WHERE m.marks >= greatest($mark_rate, $mark_ratio * u.usual)
),
counted AS (SELECT count(DISTINCT (switch, port)) AS full_ports FROM full_ones)
SELECT * FROM full_ones CROSS JOIN counted
WHERE full_ports <= $most * ports
ORDER BY switch, port, ts
