-- question: Which NICs received more than the others read at the same moment, and did queues fill meanwhile?
-- A row is an interval of a NIC that received `$ratio` of its peers or more, and `$excess_share` of its line rate
-- beyond them, or `$small_share` and `$many_times` what they received (`is_small`); few NICs of the snapshot do. A
-- switch port without a known cable must be the only one: uplinks that are not even are several (`than_before`: of
-- one that is compared with itself). Where its queue fills and few others do, `$ratio` and `$idle_share` will do (`fills`), and
-- where no log counts its bytes that it fills. A line rate that no file tells is the highest rate at which a NIC received, and
-- `$least_gbps` at least. `cnp` are the CNPs a second it sent, `usual_cnp` those of the median NIC; `marked` the
-- packets a second its switch port marked, `usual_marked` those of the median port; `paused` the frames a second
-- with which its switch paused the worst of its neighbours (where the switch is not known, the worst of all), `calm`
-- outside such intervals, or at the median of the other switches if that is less. `many_cnp`, `many_marked` and
-- `many_paused` are signs of a full queue. `senders` are NICs of known hosts that send more than they receive when most
-- comes on top, where all of them together send about as much more: `sender_gbps` each.
WITH excess AS (
  FROM evidence.nic_excess ANTI JOIN evidence.port_excess USING (format, switch, port)
  UNION ALL BY NAME
  SELECT * EXCLUDE (stopped), true AS than_before
  FROM evidence.port_excess
  WHERE coalesce(stopped, 0) < $pause_rate
  UNION ALL BY NAME
  SELECT sign AS format, host, nic, switch, port, ts_before, ts, true AS fills
  FROM evidence.full_queues WHERE NOT counted
),
named AS (
  SELECT * EXCLUDE (fills), coalesce(fills, false) AS is_uncounted,
    coalesce(host || ' ' || nic, switch || ' ' || port) AS part
  FROM excess
),
rates AS (
  SELECT max(received_gbps) AS most
  FROM (SELECT received_gbps FROM evidence.nic_rates UNION ALL SELECT received_gbps FROM excess WHERE than_before)
),
-- Where the job begins or ends within an interval, less arrives in it: a tenth of the most belongs to it.
much AS (
  SELECT *, coalesce(NOT bool_or(share >= $excess_share) OVER p, false) AS is_small
  FROM (
    SELECT e.*, e.is_uncounted OR EXISTS (
        FROM evidence.full_queues q WHERE q.part = e.part AND q.ts_before < e.ts AND q.ts > e.ts_before
      ) AS fills,
      e.ts_before + (e.ts - e.ts_before) / 2 AS middle,
      e.excess_gbps / coalesce(e.speed_gbps, s.speed_gbps, greatest((SELECT most FROM rates), $least_gbps)) AS share
    FROM named e
    LEFT JOIN evidence.port_speeds s ON s.owner = e.host AND s.part = e.nic
    WHERE e.is_uncounted OR (
      e.ratio >= $ratio AND CASE WHEN e.host IS NULL THEN e.exceeding <= 1 ELSE coalesce(e.as_much, e.exceeding) <= $most * e.peers END)
  )
  WINDOW p AS (PARTITION BY part, format)
  QUALIFY (
      count(*) FILTER (is_uncounted OR (fills AND share >= $idle_share) OR (share >= $small_share AND ratio >= $many_times)) OVER p >= $windows
      -- An interval in which it begins or ends has a part of it only: a tenth, as above.
      OR (max(share) OVER p >= $excess_share AND count(*) FILTER (share >= 0.1 * $excess_share) OVER p >= $windows)
    ) AND (is_uncounted OR excess_gbps >= 0.1 * max(excess_gbps) OVER p)
),
-- A NIC without a known cable, and the one port without one that sends as much, are its two ends; so are it and the one
-- NIC of its host that a log of cables calls otherwise, as the net device.
spans AS (
  SELECT part, any_value(host) AS host, any_value(nic) AS nic, any_value(switch) AS switch, any_value(port) AS port,
    median(received_gbps) AS gbps, min(ts_before) AS begins, max(ts) AS ends
  FROM much GROUP BY part
),
cables AS (
  SELECT n.part AS nic_part, n.nic, p.part AS port_part, p.switch, p.port, p.host IS NOT NULL AS is_nic
  FROM spans n JOIN spans p
    ON n.host IS NOT NULL AND n.switch IS NULL
    AND CASE WHEN p.host IS NULL THEN p.gbps BETWEEN 0.9 * n.gbps AND 1.1 * n.gbps
      ELSE p.host = n.host AND p.switch IS NOT NULL AND p.gbps BETWEEN 0.67 * n.gbps AND 1.5 * n.gbps END
    AND n.begins < p.ends AND p.begins < n.ends
  QUALIFY count(*) OVER (PARTITION BY n.part) = 1 AND count(*) OVER (PARTITION BY p.part) = 1
),
wrong AS (
  SELECT m.* REPLACE (
    coalesce(o.nic_part, m.part) AS part, coalesce(o.nic, m.nic) AS nic,
    coalesce(m.switch, c.switch) AS switch, coalesce(m.port, c.port) AS port
  )
  FROM much m
  LEFT JOIN cables c ON c.nic_part = m.part
  LEFT JOIN cables o ON o.port_part = m.part AND o.is_nic
  WHERE m.part NOT IN (SELECT port_part FROM cables WHERE NOT is_nic)
),
-- Where the usual NIC sends so many that none can send many times as many, they tell nothing.
cnps AS (
  SELECT median(cnp_per_second) AS usual FROM evidence.nic_marks
  HAVING coalesce($mark_ratio * median(cnp_per_second) <= $most_cnps, true)
),
marks AS (
  SELECT median(marked_per_second) AS usual FROM evidence.port_marks
),
-- Hosts whose leaf is not known are one place.
means AS (
  SELECT coalesce(switch, '') AS place, coalesce(switch, device) AS sender, avg(frames_per_second) AS frames
  FROM evidence.pause_senders GROUP BY ALL
),
places AS (
  SELECT part, CASE WHEN any_value(switch) IN (SELECT place FROM evidence.worst_pauses) THEN any_value(switch) ELSE '' END
    AS place
  FROM wrong GROUP BY part
),
-- Of hosts whose leaf is not known a few paused ones are half of all: the switches tell what is usual.
elsewhere AS (
  SELECT p.part, median(m.frames) AS frames
  FROM places p JOIN means m ON m.sender <> p.place
    AND (p.place <> '' OR (m.place <> '') = (SELECT count(*) >= 3 FROM means WHERE place <> ''))
  GROUP BY p.part HAVING count(*) >= 3
),
-- Outside: the last interval of the NIC that began before had ended. Idle minutes before and after the
-- job tell nothing: outside counts from half of the time inside on.
calm AS (
  SELECT a.part, median(a.frames) AS frames
  FROM (
    SELECT p.part, l.middle, l.frames, epoch(l.ts - l.ts_before) AS seconds
    FROM places p JOIN evidence.worst_pauses l USING (place)
  ) a
  ASOF LEFT JOIN wrong w ON w.part = a.part AND w.ts_before <= a.middle
  WHERE w.ts IS NULL OR w.ts < a.middle
  GROUP BY a.part
  HAVING 2 * sum(a.seconds) >= (SELECT sum(epoch(o.ts - o.ts_before)) FROM wrong o WHERE o.part = a.part)
),
passed_on AS (
  SELECT DISTINCT w.part, w.format, w.ts
  FROM wrong w JOIN evidence.pausing_nics n ON n.switch = w.switch AND n.port IS DISTINCT FROM w.port
    AND n.ts_before < w.ts AND n.ts > w.ts_before
),
told AS (
  SELECT w.*, p.place, least(c.frames, e.frames) AS calm
  FROM wrong w JOIN places p USING (part) LEFT JOIN calm c USING (part) LEFT JOIN elsewhere e USING (part)
),
noted AS (
  SELECT t.*, CASE WHEN m.ts >= t.middle THEN m.cnp_per_second END AS cnp
  FROM told t
  ASOF LEFT JOIN evidence.nic_marks m ON m.host = t.host AND m.nic = t.nic AND m.ts_before <= t.middle
),
marked AS (
  SELECT n.*, CASE WHEN m.ts >= n.middle THEN m.marked_per_second END AS marked
  FROM noted n
  ASOF LEFT JOIN evidence.port_marks m
    ON m.device = n.switch AND m.port = n.port AND m.ts_before <= n.middle
),
fullest AS (
  FROM marked WHERE excess_gbps IS NOT NULL
  QUALIFY row_number() OVER (PARTITION BY part ORDER BY excess_gbps DESC, ts) = 1
),
giving AS (
  SELECT f.part, f.excess_gbps, b.nic || ' of ' || b.host AS sender, b.host AS sender_host,
    8e-9 * (b.sent - b.received) / b.seconds AS gbps
  FROM fullest f
  JOIN nic_bytes b ON b.format = f.format AND b.ts > f.middle AND b.ts_before <= f.middle
    AND (b.host IS DISTINCT FROM f.host OR b.nic IS DISTINCT FROM f.nic)
  WHERE b.seconds > 0 AND b.sent > $sender_ratio * b.received
),
senders AS (
  SELECT part, count(*) AS sender_count, median(gbps) AS sender_gbps,
    array_to_string(list(sender ORDER BY gbps DESC, sender)[:3], ', ') AS senders,
    array_to_string(list_sort(list_distinct(list(sender_host ORDER BY gbps DESC, sender)[:3])), ', ') AS sender_hosts
  FROM giving GROUP BY part
  HAVING sum(gbps) BETWEEN (1 - $sender_error) * any_value(excess_gbps) AND (1 + $sender_error) * any_value(excess_gbps)
)
SELECT m.part, m.host, m.nic, m.switch, m.port, m.format, m.than_before, m.is_small, m.ts_before, m.ts,
  min(m.ts) OVER (PARTITION BY m.part) AS begun_by, m.ratio, m.peers - 1 AS others,
  m.received_gbps, m.received_gbps - m.excess_gbps AS usual_gbps, m.excess_gbps, m.speed_gbps,
  CASE WHEN c.usual IS NOT NULL THEN m.cnp END AS cnp, c.usual AS usual_cnp, greatest($mark_ratio * c.usual, $mark_rate) AS many_cnp,
  m.marked, k.usual AS usual_marked, greatest($mark_ratio * k.usual, $mark_rate) AS many_marked,
  CASE WHEN l.ts >= m.middle AND o.ts IS NULL THEN l.frames END AS paused, m.calm,
  CASE WHEN m.calm IS NOT NULL THEN greatest($pause_ratio * m.calm, $pause_rate) END AS many_paused,
  s.senders, s.sender_hosts, s.sender_gbps, nullif(greatest(s.sender_count - 3, 0), 0) AS more_senders,
  list_concat(
    CASE WHEN m.port IS NOT NULL
      THEN [{'type': 'port', 'host': NULL, 'nic': NULL, 'switch': m.switch, 'port': m.port}] END,
    CASE WHEN m.host IS NOT NULL
      THEN [{'type': 'nic', 'host': m.host, 'nic': m.nic, 'switch': NULL, 'port': NULL}] END
  ) AS entities
FROM marked m LEFT JOIN cnps c ON true CROSS JOIN marks k
LEFT JOIN senders s ON s.part = m.part
LEFT JOIN passed_on o ON o.part = m.part AND o.format = m.format AND o.ts = m.ts
ASOF LEFT JOIN evidence.worst_pauses l ON l.place = m.place AND l.ts_before <= m.middle
ORDER BY m.host, m.nic, m.switch, m.port, m.format, m.ts
