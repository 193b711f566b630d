-- question: Which uplinks let next to nothing out in an interval, and do they take bytes in, or sent before?
-- A twentieth of the group's mean is LLDP, BGP and what is left of other traffic. Where the group is
-- inferred its ports may lead to hosts: a server that only sends acknowledges by 0.1 % of the bytes,
-- so the bound is a tenth of that. What comes in is counted at the port, or as what the neighbour sends.
-- `carried_ratio` is what the port sent of the mean before it fell silent, null without two such intervals in which the
-- group carried a quarter of what it does since: where it was idle, each port sends as much LLDP as the others.
-- `moved`: others of the group took over what it had sent, and the shares of other groups stayed, as they do not
-- where a job starts anew and opens other flows. Of these groups only uneven ones tell: links that a switch balances
-- stay even whatever begins. Eight intervals on either side are compared.
WITH members AS (
  SELECT job, device, uplink_group, inferred, port, members, ts_before, ts, seconds, gap,
    sent / seconds AS rate, avg(sent / seconds) OVER g AS usual, count(*) OVER g AS links
  FROM uplink_port_windows
  WINDOW g AS (PARTITION BY job, uplink_group, ts)
),
busy AS (
  SELECT *, usual >= 0.25 * median(usual) OVER (PARTITION BY job, uplink_group) AS is_busy,
    is_busy AND links = members AND links >= 2 AND NOT coalesce(gap, false)
      AND rate <= CASE WHEN inferred THEN 0.0001 ELSE 0.05 END * usual AS is_silent
  FROM members
),
silent AS (
  SELECT * FROM busy WHERE is_silent
),
received AS (
  SELECT t.device, t.port, t.ts_before, t.ts, coalesce(t.rx_bytes, t.rx_packets) / t.seconds AS rate
  FROM port_traffic t
  WHERE coalesce(t.rx_bytes, t.rx_packets) IS NOT NULL
    AND t.device IN (SELECT device FROM silent)
  UNION ALL
  SELECT c.owner, c.part, t.ts_before, t.ts, coalesce(t.tx_bytes, t.tx_packets) / t.seconds
  FROM port_traffic t JOIN cable_ends c ON c.far_owner = t.device AND c.far_part = t.port
  WHERE c.owner IN (SELECT device FROM silent)
),
-- Over the time the port was silent, against the usual port of its group.
taken AS (
  SELECT s.device, s.uplink_group, g.port, avg(r.rate) AS rate
  FROM (
    SELECT device, uplink_group, min(ts_before) AS begins, max(ts) AS ends
    FROM silent GROUP BY device, uplink_group
  ) s
  JOIN parallel_ports g USING (device, uplink_group)
  JOIN received r ON r.device = s.device AND r.port = g.port AND r.ts_before >= s.begins
    AND r.ts <= s.ends
  GROUP BY ALL
),
compared AS (
  SELECT device, uplink_group, port, rate / nullif(median(rate) OVER w, 0) AS received_ratio
  FROM taken
  WINDOW w AS (PARTITION BY device, uplink_group)
),
before AS (
  SELECT b.device, b.uplink_group, b.port, avg(b.rate / b.usual) AS carried_ratio
  FROM busy b
  JOIN (SELECT device, uplink_group, port, min(ts) AS since, avg(usual) AS meanwhile FROM silent GROUP BY ALL) s
    USING (device, uplink_group, port)
  WHERE b.is_busy AND b.ts < s.since AND b.usual > 0 AND b.usual >= 0.25 * s.meanwhile
  GROUP BY ALL HAVING count(*) >= 2
),
-- Of each port that fell silent: when, until it sent again, and how long intervals are.
marked AS (
  SELECT *, min(ts) FILTER (is_silent) OVER (PARTITION BY job, device, uplink_group, port) AS since
  FROM busy SEMI JOIN before USING (device, uplink_group, port)
  WHERE is_busy AND NOT inferred
),
falls AS (
  SELECT job, device, uplink_group, port, since, coalesce(min(ts_before) FILTER (NOT is_silent), max(ts)) AS until,
    8 * to_seconds(median(seconds)) AS reach
  FROM marked WHERE ts >= since
  GROUP BY job, device, uplink_group, port, since HAVING count(*) FILTER (is_silent) >= 2
),
sides AS (
  SELECT f.device AS switch, f.port AS stopped, b.uplink_group, b.port, b.uplink_group = f.uplink_group AS is_own,
    avg(b.rate) FILTER (b.ts < f.since) AS before, avg(b.rate) FILTER (b.ts > f.since) AS after
  FROM falls f JOIN busy b ON b.job IS NOT DISTINCT FROM f.job AND b.is_busy
    AND b.ts BETWEEN f.since - f.reach AND least(f.until, f.since + f.reach)
  WHERE NOT b.inferred AND b.links >= 2
  GROUP BY ALL
),
shares AS (
  SELECT *, sum(before) OVER g AS all_before, sum(after) OVER g AS all_after,
    abs(before / sum(before) OVER g - after / sum(after) OVER g) / 2 AS change,
    abs(before / sum(before) OVER g - 1 / count(*) OVER g) / 2 AS distance
  FROM sides WINDOW g AS (PARTITION BY switch, stopped, uplink_group)
),
moves AS (
  SELECT switch AS device, stopped AS port,
    bool_or(is_own AND port = stopped AND all_after > all_before - before / 2)
      AND count(DISTINCT uplink_group) FILTER (NOT is_own AND uneven >= $moved) >= 2
      AND quantile_cont(changed, 0.8) FILTER (NOT is_own AND uneven >= $moved) <= $moved AS moved
  FROM (
    SELECT *, sum(change) OVER g AS changed, sum(distance) OVER g AS uneven
    FROM shares WINDOW g AS (PARTITION BY switch, stopped, uplink_group)
  )
  GROUP BY switch, stopped
),
state AS (
  SELECT device, port, arg_max(oper, ts) AS oper FROM named_status
  WHERE oper IS NOT NULL GROUP BY device, port
)
SELECT s.device, s.uplink_group, s.inferred, s.port, s.links, s.ts_before, s.ts, s.seconds,
  s.rate / nullif(s.usual, 0) AS sent_ratio, c.received_ratio, e.carried_ratio,
  coalesce(m.moved, false) AS moved, o.oper
FROM silent s
LEFT JOIN compared c USING (device, uplink_group, port)
LEFT JOIN before e USING (device, uplink_group, port)
LEFT JOIN moves m USING (device, port)
LEFT JOIN state o USING (device, port)
ORDER BY s.device, s.port, s.ts
