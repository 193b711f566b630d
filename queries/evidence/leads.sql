-- question: What changed with a slowdown from `$begin` to `$end`, strongest first?
-- Leads, no causes: counters and messages of kernels and switches that came `$rise` times as often as in the rest
-- of the run (`$part_rise` times on some parts; one more is assumed there, for what was never seen), NICs that
-- receive more than their peers and uplinks that are uneven by as much more, GPU clocks lower by `$shift` and messages
-- of collectives larger by it.
WITH run AS (
  SELECT least(min(ts), $begin::TIMESTAMP) AS first, greatest(max(ts), $end::TIMESTAMP) AS last,
    greatest(epoch($end::TIMESTAMP - $begin::TIMESTAMP), 1) AS inside,
    greatest(epoch(last - first) - epoch($end::TIMESTAMP - $begin::TIMESTAMP), 1) AS outside
  FROM evidence.job_steps
),
counted AS (
  SELECT counter AS signal, owner || ' ' || part AS part, ts_before, ts, risen
  FROM evidence.sick_intervals
  UNION ALL
  SELECT 'pause frames of switches', coalesce(switch, 'the leaf of ' || device), ts_before, ts,
    frames_per_second * epoch(ts - ts_before)
  FROM evidence.pause_senders
  UNION ALL
  SELECT 'pause frames of NICs', coalesce(host || ' ' || nic, 'what ' || switch || ' ' || port || ' leads to', device),
    ts_before, ts, frames_per_second * seconds
  FROM evidence.nic_pauses
  UNION ALL
  SELECT 'packets marked (ECN)', device || ' ' || port, ts_before, ts, marked_per_second * epoch(ts - ts_before)
  FROM evidence.port_marks
  UNION ALL
  SELECT 'congestion notifications', host || ' ' || nic, ts_before, ts, cnp_per_second * seconds
  FROM evidence.nic_marks
  UNION ALL
  SELECT CASE WHEN of_switch THEN 'switch' ELSE 'kernel' END || ' messages: ' || kind, host, ts, ts, 1
  FROM evidence.kernel_events
),
placed AS (
  SELECT c.*, c.ts_before + (c.ts - c.ts_before) / 2 BETWEEN $begin AND $end AS during
  FROM counted c JOIN run r ON c.ts >= r.first AND c.ts_before <= r.last
  WHERE c.risen > 0
),
parts AS (
  SELECT signal, part, coalesce(sum(risen) FILTER (during), 0) AS inside,
    coalesce(sum(risen) FILTER (NOT during), 0) AS outside
  FROM placed GROUP BY signal, part
),
-- All parts together, or those of which each alone came more often by far: others may have come less often.
signals AS (
  SELECT p.signal, o.only_risen, sum(p.inside) AS many, sum(p.inside) / any_value(r.inside) AS now,
    sum(p.outside) / any_value(r.outside) AS otherwise,
    now / ((sum(p.outside) + 1) / any_value(r.outside)) AS factor,
    count(*) FILTER (p.inside > 0) AS parts, arg_max(p.part, p.inside) AS most
  FROM parts p CROSS JOIN run r CROSS JOIN (VALUES (false), (true)) o(only_risen)
  WHERE NOT o.only_risen OR p.inside / r.inside >= $part_rise * (p.outside + 1) / r.outside
  GROUP BY p.signal, o.only_risen
  HAVING factor >= $rise AND (many >= 3 OR p.signal LIKE '% messages: %')
  QUALIFY row_number() OVER (PARTITION BY p.signal ORDER BY o.only_risen) = 1
),
clocks AS (
  SELECT median(clock) FILTER (during) AS now, median(clock) FILTER (NOT during) AS otherwise
  FROM (
    SELECT g.clock, g.ts BETWEEN $begin AND $end AS during
    FROM evidence.busy_gpus g JOIN run r ON g.ts BETWEEN r.first AND r.last
  )
),
messages AS (
  SELECT op, avg(bytes) FILTER (during) / 1e6 AS now, avg(bytes) FILTER (NOT during) / 1e6 AS otherwise
  FROM (
    SELECT c.op, c.bytes, c.ts BETWEEN $begin AND $end AS during
    FROM collectives c JOIN run r ON c.ts BETWEEN r.first AND r.last
    WHERE c.bytes > 0
  )
  GROUP BY op
),
uplinks AS (
  SELECT device, avg(excess) FILTER (during) AS now, avg(excess) FILTER (NOT during) AS otherwise
  FROM (
    SELECT w.device, list_max(w.loads) / list_avg(w.loads) - 1 AS excess,
      w.ts_before + (w.ts - w.ts_before) / 2 BETWEEN $begin AND $end AS during
    FROM evidence.uplink_windows w JOIN run r ON w.ts >= r.first AND w.ts_before <= r.last
  )
  GROUP BY device
),
-- What came on top of what the peers received, in bits.
bits AS (
  SELECT e.part, e.during, sum(e.excess) / any_value(CASE WHEN e.during THEN r.inside ELSE r.outside END) AS gbps
  FROM (
    SELECT coalesce(host || ' ' || nic, 'what ' || switch || ' ' || port || ' leads to') AS part,
      excess_gbps * seconds AS excess,
      ts_before + (ts - ts_before) / 2 BETWEEN $begin AND $end AS during, ts_before, ts
    FROM evidence.nic_excess WHERE host IS NOT NULL OR exceeding = 1
  ) e JOIN run r ON e.ts >= r.first AND e.ts_before <= r.last
  GROUP BY e.part, e.during
),
excess AS (
  SELECT part, sum(gbps) FILTER (during) AS now, coalesce(sum(gbps) FILTER (NOT during), 0) AS otherwise
  FROM bits GROUP BY part
)
SELECT factor, format('{} {:.3g} a second, {:.3g} in the rest of the run, on {} part{}{}, most at {}',
    signal, now, otherwise, parts, CASE WHEN parts = 1 THEN '' ELSE 's' END,
    CASE WHEN only_risen THEN ' (as often as before on the others, or less)' ELSE '' END, most) AS lead,
  false AS computes
FROM signals
UNION ALL
SELECT otherwise / now, format('GPU clocks {:.0f} MHz, {:.0f} MHz in the rest of the run', now, otherwise), true
FROM clocks
WHERE now < (1 - $shift) * otherwise
UNION ALL
SELECT now / otherwise, format('messages of {} {:,.0f} MB on average, {:,.0f} MB in the rest of the run: more work a step makes them larger',
    op, now, otherwise), true
FROM messages
WHERE now > (1 + $shift) * otherwise
UNION ALL
SELECT now / greatest(otherwise, 1),
  format('{} received {:.0f} Gb/s more than its peers, {:.0f} in the rest of the run', part, now, otherwise), false
FROM excess
WHERE now >= $rise * greatest(otherwise, 1)
UNION ALL
SELECT now / greatest(otherwise, 0.05),
  format('the busiest uplink of {} {:.0f} % above the mean, {:.0f} % in the rest of the run', device,
    100 * now, 100 * otherwise), false
FROM uplinks
WHERE now >= $rise * greatest(otherwise, 0.05)
ORDER BY factor DESC, lead
