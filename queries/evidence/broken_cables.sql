-- question: Which cables corrupt data, at which end is it counted, and who sent again meanwhile?
-- A row is an interval in which an end counted errors. What is counted while the link is down or trains anew
-- is that event's. `near` counted most, `far` is the other end; `sure` is when one counter of an end
-- had risen in `$intervals` intervals, or by more than `$risen`. Clocks may be off by two seconds. Who sent again
-- is asked of the 20 worst cables: `asked` is null for others. `per_second` is what the interval counted of the
-- cable's worst counter, null in rows of other counters.
WITH keyed AS (
  SELECT *, owner || ' ' || part AS here, far_owner || ' ' || far_part AS there,
    coalesce(least(here, there) || ' to ' || greatest(here, there), here) AS cable
  FROM evidence.broken_intervals WHERE NOT alike
),
downs AS (
  SELECT owner || ' ' || part AS here, far_owner || ' ' || far_part AS there, ts_before, ts
  FROM evidence.sick_intervals WHERE counter = 'link_downed'
),
steady AS (
  SELECT *, sum(risen) OVER c > $risen OR count(*) OVER c >= $intervals AS enough
  FROM keyed k
  WHERE NOT EXISTS (
    SELECT 1 FROM downs d
    WHERE (d.here IN (k.here, k.there) OR d.there = k.here)
      AND d.ts > k.ts_before - INTERVAL 2 SECOND AND d.ts_before < k.ts + INTERVAL 2 SECOND
  )
  WINDOW c AS (PARTITION BY owner, part, counter ORDER BY ts ROWS UNBOUNDED PRECEDING)
),
counts AS (
  SELECT s.cable, s.here, s.counter, sum(s.risen) AS risen, count(*) AS intervals,
    sum(s.risen) / any_value(s.bits) * 1e12 AS rate, any_value(s.allowed) AS allowed,
    min(s.ts) FILTER (s.enough) AS sure
  FROM steady s
  GROUP BY s.cable, s.here, s.counter
),
worst AS (
  SELECT *, min(sure) OVER (PARTITION BY cable) AS cable_sure
  FROM counts
  QUALIFY row_number() OVER (PARTITION BY cable ORDER BY risen DESC, here, counter) = 1
    AND cable_sure IS NOT NULL
),
others AS (
  SELECT c.* FROM counts c JOIN worst w USING (cable)
  WHERE c.here <> w.here
  QUALIFY row_number() OVER (PARTITION BY c.cable ORDER BY c.risen DESC, c.counter) = 1
),
ends AS (
  SELECT DISTINCT cable, owner, part, is_nic, here FROM steady
  UNION
  SELECT DISTINCT cable, far_owner, far_part, far_is_nic, there FROM steady WHERE there IS NOT NULL
),
named AS (
  SELECT e.cable, list(
      CASE WHEN e.is_nic THEN {'type': 'nic', 'host': e.owner, 'nic': e.part, 'switch': NULL, 'port': NULL}
        ELSE {'type': 'port', 'host': NULL, 'nic': NULL, 'switch': e.owner, 'port': e.part} END
      ORDER BY e.here <> w.here, e.here
    ) AS entities,
    any_value(e.here) FILTER (e.here <> w.here) AS far, list(e.here) AS labels,
    list(e.owner) FILTER (NOT e.is_nic) AS switches,
    list({'host': e.owner, 'nic': e.part}) FILTER (e.is_nic) AS nics,
    arg_min(e.owner, (e.is_nic, e.here <> w.here)) AS at_switch,
    arg_min(e.part, (e.is_nic, e.here <> w.here)) AS at_port
  FROM ends e JOIN worst w USING (cable)
  GROUP BY e.cable
),
-- What NICs sent again meanwhile, where the cable's NIC is one of them, or they are below its switches.
-- Intervals that follow each other are one: a cable that is broken for hours is compared once.
islands AS (
  SELECT cable, ts_before, ts, coalesce(ts_before > max(ts) OVER (
      PARTITION BY cable ORDER BY ts_before, ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) + INTERVAL 4 SECOND, true) AS is_first
  FROM steady
),
spans AS (
  SELECT cable, min(ts_before) AS ts_before, max(ts) AS ts
  FROM (
    SELECT *, count(*) FILTER (is_first) OVER (PARTITION BY cable ORDER BY ts_before, ts) AS island
    FROM islands
  )
  GROUP BY cable, island
),
asked AS (
  SELECT cable, '' AS asked FROM worst ORDER BY risen DESC, cable LIMIT 20
),
again AS (
  SELECT DISTINCT n.cable, r.owner, r.part, r.is_nic, r.counter, r.ts, r.risen, r.far_owner,
    len(n.labels) AS known_ends
  FROM named n
  JOIN asked USING (cable)
  JOIN spans s USING (cable)
  JOIN evidence.sick_intervals r ON counter_family(r.counter) = 'resend'
    AND r.ts > s.ts_before - INTERVAL 2 SECOND AND r.ts_before < s.ts + INTERVAL 2 SECOND
    AND (n.nics IS NOT NULL OR list_contains(n.switches, r.far_owner))
),
own AS (
  SELECT DISTINCT a.cable FROM again a JOIN named n USING (cable)
  WHERE n.nics IS NULL OR list_contains(n.nics, {'host': a.owner, 'nic': a.part})
),
resent AS (SELECT * FROM again SEMI JOIN own USING (cable)),
totals AS (
  SELECT cable, counter, sum(risen) AS risen, count(DISTINCT owner) AS hosts
  FROM resent GROUP BY cable, counter
),
most AS (
  SELECT cable, arg_max(counter, (risen, counter)) AS counter, max(risen) AS risen,
    arg_max(hosts, (risen, counter)) AS hosts
  FROM totals GROUP BY cable
),
victims AS (
  SELECT cable, list({'type': 'nic', 'host': owner, 'nic': part}) AS related
  FROM (
    SELECT cable, owner, part FROM resent WHERE is_nic GROUP BY cable, owner, part
    QUALIFY row_number() OVER (PARTITION BY cable ORDER BY sum(risen) DESC, owner, part) <= 8
  )
  GROUP BY cable
)
SELECT s.cable, n.entities, v.related, s.ts_before, s.ts, w.cable_sure AS sure, w.here AS near,
  coalesce(n.far, 'an end no log names') AS far, w.counter, w.risen, w.intervals AS counted_intervals,
  CASE WHEN s.here = w.here AND s.counter = w.counter THEN s.risen / nullif(epoch(s.ts - s.ts_before), 0) END AS per_second,
  w.rate, w.allowed, o.here AS other_end, o.counter AS other_counter, o.risen AS other_risen,
  o.intervals AS other_intervals, o.rate AS other_rate, n.at_switch, n.at_port,
  q.asked, m.counter AS resent_counter, m.risen AS resent, m.hosts AS resending_hosts
FROM steady s
JOIN worst w USING (cable)
JOIN named n USING (cable)
LEFT JOIN asked q USING (cable)
LEFT JOIN others o USING (cable)
LEFT JOIN most m USING (cable)
LEFT JOIN victims v USING (cable)
ORDER BY s.cable, s.ts, s.counter
