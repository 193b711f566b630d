-- question: How fast does each port run, since when, and how fast do the ports of its role?
-- A role is the NICs of one name over all hosts, the switch ports to them, or the ports from
-- switches called alike to switches called alike. Where a NIC's role has two members, as in a job of two hosts, and
-- they ever differ, all NICs of the hosts are the role. `agreeing` of `peers` ports of a role run at its
-- `usual_gbps`. `first_gbps` is what the port ran at when it was first asked. A port that one source saw slower than
-- usual or than first, and at last as fast again, was so from `since` to `ended`. `faster_until` is when a port that
-- became slower was last seen faster. `started_gbps` is what NCCL read as the job began (`started`), `read_at` when a tool
-- read the port last. What was read after another job began on the same hosts tells nothing of this one, where an end of
-- the cable was read before.
WITH told AS (
  SELECT device, port, format, ts, ts AS moment, speed_gbps, could_be FROM named_status
  WHERE oper IS DISTINCT FROM 'down' AND (speed_gbps > 0 OR could_be IS NOT NULL)
  UNION ALL
  SELECT host_name(n.host), n.nic, NULL, NULL, j.first_time, n.speed_mbps / 1000.0, NULL
  FROM nccl_nics n LEFT JOIN jobs j ON j.job IS NOT DISTINCT FROM n.job
  WHERE plugin IS DISTINCT FROM 'Socket' AND speed_mbps > 0
),
everything AS (
  SELECT coalesce(n.host, p.owner, t.device) AS owner, coalesce(n.nic, p.part, t.port) AS part,
    n.nic IS NOT NULL OR coalesce(p.is_nic, false) AS is_nic, t.format, t.ts, t.moment, t.speed_gbps, t.could_be
  FROM told t
  LEFT JOIN nic_names n ON n.host = host_name(t.device) AND n.name = t.port
  LEFT JOIN port_parts p ON p.device = t.device AND p.port = t.port
),
read_before AS (
  SELECT DISTINCT owner, part FROM everything WHERE ts IS NULL OR ts < (SELECT until FROM own_time)
),
told_before AS (
  FROM read_before
  UNION
  SELECT far_owner, far_part FROM cable_ends SEMI JOIN read_before USING (owner, part)
),
placed AS (
  SELECT e.* FROM everything e LEFT JOIN told_before b USING (owner, part)
  WHERE b.owner IS NULL OR e.ts IS NULL OR e.ts < coalesce((SELECT until FROM own_time), 'infinity')
),
-- What was said last; NCCL says it as the job begins, and of a job without times at any time.
latest AS (
  SELECT owner, part, is_nic,
    coalesce(arg_max(speed_gbps, (moment, -speed_gbps)) FILTER (moment IS NOT NULL), min(speed_gbps))
      AS speed_gbps,
    min(speed_gbps) FILTER (format IS NULL AND ts IS NULL) AS started_gbps,
    min(moment) FILTER (ts IS NULL) AS started, max(ts) AS read_at,
    arg_min(speed_gbps, ts) AS first_gbps, min(speed_gbps) AS least_gbps,
    arg_max({'hint': could_be}, (ts, could_be IS NOT NULL)).hint AS could_be
  FROM placed GROUP BY owner, part, is_nic
),
named AS (
  SELECT l.*, e.far_owner, e.far_part, e.far_is_nic, CASE
      WHEN l.is_nic THEN 'NIC ' || l.part
      WHEN e.far_is_nic THEN 'to NIC ' || e.far_part
      WHEN e.far_owner IS NOT NULL THEN regexp_replace(l.owner, '\d+', '#', 'g') || ' to '
        || regexp_replace(e.far_owner, '\d+', '#', 'g')
    END AS role
  FROM latest l LEFT JOIN cable_ends e ON e.owner = l.owner AND e.part = l.part
),
roles AS (
  SELECT * EXCLUDE (least_gbps) REPLACE (CASE
      WHEN count(*) OVER r = 2 AND min(least_gbps) OVER r < max(least_gbps) OVER r
        THEN regexp_replace(role, '\d+', '#', 'g')
      ELSE role
    END AS role)
  FROM named
  WINDOW r AS (PARTITION BY role)
),
usual AS (
  SELECT role, usual_gbps, count(*) AS peers, count(*) FILTER (speed_gbps = usual_gbps) AS agreeing
  FROM (
    SELECT role, speed_gbps, mode(speed_gbps) OVER (PARTITION BY role) AS usual_gbps
    FROM (
      SELECT role, speed_gbps FROM named
      UNION ALL
      SELECT regexp_replace(role, '\d+', '#', 'g'), speed_gbps FROM named
      WHERE role IN ('NIC ' || part, 'to NIC ' || far_part) AND regexp_matches(role, '\d')
    )
    WHERE role IS NOT NULL AND speed_gbps IS NOT NULL
  )
  GROUP BY role, usual_gbps
),
since AS (
  SELECT p.owner, p.part, min(p.ts) FILTER (p.speed_gbps = l.speed_gbps) AS since,
    max(p.ts) FILTER (p.speed_gbps > l.speed_gbps) AS faster_until
  FROM placed p JOIN latest l USING (owner, part)
  WHERE p.ts IS NOT NULL GROUP BY p.owner, p.part
),
slow AS (
  SELECT p.owner, p.part, p.format, min(p.speed_gbps) AS gbps, min(p.ts) AS since, max(p.ts) AS last_slow
  FROM placed p JOIN roles r USING (owner, part) LEFT JOIN usual u USING (role)
  WHERE p.ts IS NOT NULL AND p.speed_gbps < coalesce(u.usual_gbps, r.first_gbps)
    AND r.speed_gbps >= coalesce(u.usual_gbps, r.first_gbps)
  GROUP BY p.owner, p.part, p.format
),
over AS (
  SELECT owner, part, min(gbps) AS gbps, min(since) AS since, max(faster_until) AS faster_until, max(ended) AS ended
  FROM (
    SELECT p.owner, p.part, p.format, s.gbps, s.since,
      max(p.ts) FILTER (p.ts < s.since) AS faster_until, min(p.ts) FILTER (p.ts > s.last_slow) AS ended
    FROM placed p JOIN slow s USING (owner, part, format)
    WHERE p.speed_gbps > s.gbps
    GROUP BY ALL
  )
  WHERE ended IS NOT NULL
  GROUP BY owner, part
)
SELECT r.owner, r.part, r.is_nic, r.far_owner, r.far_part, r.far_is_nic, r.role,
  coalesce(o.gbps, r.speed_gbps) AS speed_gbps,
  r.first_gbps, r.started_gbps, r.started, r.read_at, r.could_be, coalesce(o.since, s.since) AS since,
  CASE WHEN o.ended IS NOT NULL THEN o.faster_until WHEN s.faster_until < s.since THEN s.faster_until END AS faster_until,
  o.ended, u.usual_gbps, u.peers, u.agreeing
FROM roles r LEFT JOIN usual u USING (role) LEFT JOIN since s USING (owner, part)
LEFT JOIN over o USING (owner, part)
ORDER BY r.owner, r.part
