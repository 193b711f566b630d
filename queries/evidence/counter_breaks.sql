-- question: Where did a counter fall, wrap around, stop at its highest value, or tell nonsense?
-- One row a device, counter, kind and `source` (the format it was read from): `reset` (it fell: the
-- rise of that interval is not known), `wrapped` (a 32-bit counter began anew: the rise is known),
-- `stopped` (at its highest value, where it says nothing more), `nonsense` (below zero, as the device
-- told it). `ports` show it, `times` in all, the first time at `first_time`; `port` where it is one.
-- `counted_by` is another source that counts on what stopped, on each of these ports: nothing is lost.
WITH rules AS (
  SELECT format, counter, any_value(width) AS width, 2 ^ any_value(width) AS most,
    any_value(overflow) AS overflow, any_value(kind) AS kind
  FROM counter_info
  WHERE table_name = 'port_samples' AND kind NOT IN ('delta', 'gauge')
  GROUP BY format, counter
),
-- One that breaks has a rise that is not known, is negative, or nears its highest value. Nearly none is so:
-- to put the samples of all others in order would cost ten times as much.
unknown AS (
  FROM (
    SELECT format, device, port, count(*) - count(COLUMNS(lambda c: counter_family(c) IS NOT NULL))
    FROM port_rates WHERE format IN (SELECT format FROM rules) GROUP BY format, device, port
  ) UNPIVOT (rises FOR counter IN (COLUMNS(* EXCLUDE (format, device, port))))
),
spans AS (
  SELECT format, device, port, last, counter, value.lowest, value.highest
  FROM (
    FROM (
      SELECT format, device, port, max(ts) AS last, {
        'lowest': min(COLUMNS(* EXCLUDE (format, device, port, ts))),
        'highest': max(COLUMNS(* EXCLUDE (format, device, port, ts)))
      }
      FROM (
        SELECT format, device, port, ts, COLUMNS(lambda c: counter_family(c) IS NOT NULL)
        FROM named_samples WHERE ts IS NOT NULL AND format IN (SELECT format FROM rules)
      )
      GROUP BY format, device, port
    ) UNPIVOT (value FOR counter IN (COLUMNS(* EXCLUDE (format, device, port, last))))
  )
  WHERE value.highest IS NOT NULL
),
likely AS (
  SELECT s.format, s.device, s.port, s.counter
  FROM spans s
  JOIN rules r USING (format, counter)
  LEFT JOIN unknown u USING (format, device, port, counter)
  WHERE (u.rises > 0 AND s.highest > 0) OR s.lowest < 0 OR (r.width < 64 AND s.highest > 0.9 * r.most)
),
told AS (
  SELECT job, format, device, port, ts, counter, value
  FROM (
    FROM named_samples SEMI JOIN likely USING (format, device, port) WHERE ts IS NOT NULL
  ) UNPIVOT (value FOR counter IN (COLUMNS(lambda c: counter_family(c) IS NOT NULL)))
),
moments AS (
  SELECT job, format, device, port, ts, counter, max(value) AS value
  FROM told SEMI JOIN likely USING (format, device, port, counter)
  GROUP BY ALL
),
paired AS (
  SELECT *, lag(value) OVER w AS before, epoch(ts) - epoch(lag(ts) OVER w) AS seconds
  FROM moments
  WINDOW w AS (PARTITION BY job, format, device, port, counter ORDER BY ts)
),
suspects AS (
  SELECT p.*, r.* EXCLUDE (format, counter),
    r.overflow = 'saturate' AND r.width < 64 AND p.value = r.most - 1 AS at_its_most
  FROM paired p JOIN rules r USING (format, counter)
  WHERE p.value < p.before OR p.value < 0
    OR (r.overflow = 'saturate' AND r.width < 64 AND p.value = r.most - 1)
),
broken AS (
  SELECT format, device, port, counter, ts, CASE
    WHEN value < 0 THEN 'nonsense'
    WHEN at_its_most THEN 'stopped'
    WHEN before < 0 THEN NULL
    WHEN rise(
      before, value, {'most': most, 'width': width, 'overflow': overflow, 'kind': kind}, seconds
    ) IS NULL THEN 'reset'
    ELSE 'wrapped'
  END AS what
  FROM suspects
),
named AS (
  SELECT b.*, coalesce(p.owner, b.device) AS owner, coalesce(p.part, b.port) AS part
  FROM broken b LEFT JOIN port_parts p USING (device, port)
  WHERE b.what IS NOT NULL
),
stops AS (
  SELECT format, device, port, owner, part, counter, min(ts) AS first_time
  FROM named WHERE what = 'stopped' GROUP BY ALL
),
-- By itself: joined with its heirs at once, all counters of one name meet each other.
stopped AS MATERIALIZED (
  SELECT s.*, o.highest - o.lowest AS risen FROM stops s JOIN spans o USING (format, device, port, counter)
),
-- Samples of two sources are of other times: one that rose half as much counts the same.
others AS (
  SELECT s.format, s.device, s.port, s.counter, min(h.format) AS heir
  FROM stopped s
  JOIN port_parts p ON p.owner = s.owner AND p.part = s.part
  JOIN spans h ON h.device = p.device AND h.port = p.port AND h.counter = s.counter
    AND h.format <> s.format AND h.last > s.first_time
  WHERE h.highest - h.lowest >= s.risen / 2
    AND NOT EXISTS (
      SELECT 1 FROM named n
      WHERE n.format = h.format AND n.device = h.device AND n.port = h.port AND n.counter = h.counter
        AND n.what <> 'wrapped'
    )
  GROUP BY s.format, s.device, s.port, s.counter
)
SELECT device, counter, what, count(DISTINCT port) AS ports, count(*) AS times, min(ts) AS first_time,
  format AS source, CASE WHEN count(DISTINCT part) = 1 THEN any_value(part) END AS port,
  CASE WHEN what = 'stopped' AND count(heir) = count(*) THEN min(heir) END AS counted_by
FROM named LEFT JOIN others USING (format, device, port, counter)
GROUP BY device, counter, what, format
ORDER BY what = 'wrapped', what = 'stopped', counted_by IS NOT NULL, times DESC, device, counter, what, source
