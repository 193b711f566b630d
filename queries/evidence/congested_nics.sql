-- question: Which NICs received more than the others read at the same moment, and did queues fill meanwhile?
-- A row is an interval of a NIC that received `$ratio` of its peers or more, and `$excess_share` of its
-- line rate beyond them; few NICs of the snapshot do. A line rate that no file tells is the highest rate
-- at which a NIC received, and `$least_gbps` at least. `cnp` are the CNPs a second it sent, `usual_cnp` those of the
-- median NIC; `paused` the frames a second with which the worst leaf paused its NICs, and
-- `calm` outside such intervals. `many_cnp` and `many_paused` are signs of a full queue.
WITH rates AS (
  SELECT max(received_gbps) AS most FROM evidence.nic_rates
),
wrong AS (
  SELECT e.*, e.ts_before + (e.ts - e.ts_before) / 2 AS middle
  FROM evidence.nic_excess e
  LEFT JOIN evidence.port_speeds s ON s.owner = e.host AND s.part = e.nic
  WHERE e.ratio >= $ratio AND e.exceeding <= $most * e.peers AND e.excess_gbps >= $excess_share
    * coalesce(e.speed_gbps, s.speed_gbps, greatest((SELECT most FROM rates), $least_gbps))
),
usual AS (
  SELECT median(cnp_per_second) AS cnp FROM evidence.nic_marks
),
leaves AS (
  SELECT ts_before, ts, ts_before + (ts - ts_before) / 2 AS middle, max(frames_per_second) AS frames
  FROM evidence.switch_pauses WHERE frames_per_second IS NOT NULL
  GROUP BY ts_before, ts
),
-- Outside: the last interval of the NIC that began before had ended.
calm AS (
  SELECT a.host, a.nic, median(a.frames) AS frames
  FROM (
    SELECT n.host, n.nic, l.middle, l.frames FROM (SELECT DISTINCT host, nic FROM wrong) n CROSS JOIN leaves l
  ) a
  ASOF LEFT JOIN wrong w ON w.host = a.host AND w.nic = a.nic AND w.ts_before <= a.middle
  WHERE w.ts IS NULL OR w.ts < a.middle
  GROUP BY a.host, a.nic
),
marked AS (
  SELECT w.*, CASE WHEN m.ts >= w.middle THEN m.cnp_per_second END AS cnp
  FROM wrong w
  ASOF LEFT JOIN evidence.nic_marks m ON m.host = w.host AND m.nic = w.nic AND m.ts_before <= w.middle
)
SELECT m.host, m.nic, m.switch, m.port, m.format, m.ts_before, m.ts, m.ratio, m.peers - 1 AS others,
  m.received_gbps, m.received_gbps - m.excess_gbps AS usual_gbps, m.excess_gbps, m.speed_gbps,
  m.cnp, u.cnp AS usual_cnp, greatest($mark_ratio * u.cnp, $mark_rate) AS many_cnp,
  CASE WHEN l.ts >= m.middle THEN l.frames END AS paused, c.frames AS calm,
  greatest($pause_ratio * c.frames, $pause_rate) AS many_paused,
  [CASE WHEN m.port IS NULL THEN {'type': 'nic', 'host': m.host, 'nic': m.nic, 'switch': NULL, 'port': NULL}
    ELSE {'type': 'port', 'host': NULL, 'nic': NULL, 'switch': m.switch, 'port': m.port} END] AS entities,
  [{'type': 'nic', 'host': m.host, 'nic': m.nic}] AS related
FROM marked m CROSS JOIN usual u
ASOF LEFT JOIN leaves l ON l.ts_before <= m.middle
LEFT JOIN calm c ON c.host = m.host AND c.nic = m.nic
ORDER BY m.host, m.nic, m.format, m.ts
