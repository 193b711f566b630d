-- question: Do collectives take longer while a port counts errors, drops or retransmissions?
-- columns:
--   job                 job of the collectives, else of the counters
--   device              switch, or host for a NIC
--   port                port
--   ts_before           begin of the counter interval, UTC
--   ts                  end of the counter interval, UTC
--   counter             counter that rose; fabricobs schema explains it
--   risen               by how much, in the counter's unit
--   op                  collective compared
--   bytes               its message size, bytes
--   calls               calls that end in the interval
--   pure_ms             median time of the rank that arrived last, ms
--   elsewhere_pure_ms   the same while no such counter of this port rose, ms
--   pure_ratio          pure_ms over elsewhere_pure_ms
-- example: fabricobs query collectives_and_errors
--
-- Collectives: of the largest messages of each communicator and op, the kind (op, bytes, ranks) the
-- job spends most time in; those within one host are left out.
-- Only intervals in which a counter rose are listed; old totals that stand still are normal. A port
-- whose counters rise in every interval has no elsewhere.
WITH calls AS (
  SELECT job, op, bytes, ts, pure_ms, usual_ms FROM main_collective WHERE ts IS NOT NULL
),
sick AS (
  SELECT DISTINCT job, device, port, format, ts_before, ts,
    dense_rank() OVER (ORDER BY job, device, port, format) AS port_id
  FROM error_rises
  WHERE risen > 0
),
-- Each call beside the next interval of the port that ends after it: in it or before it.
placed AS (
  SELECT c.port_id, c.job, c.op, c.bytes, c.pure_ms, s.ts,
    coalesce(c.ts > s.ts_before, false) AS inside
  FROM (
    SELECT p.port_id, a.job, a.op, a.bytes, a.ts, a.pure_ms
    FROM (SELECT DISTINCT port_id, job FROM sick) p
    JOIN calls a ON p.job IS NULL OR p.job IS NOT DISTINCT FROM a.job
  ) c
  ASOF LEFT JOIN sick s ON c.port_id = s.port_id AND c.ts <= s.ts
),
elsewhere AS (
  SELECT port_id, job, any_value(op) AS op, any_value(bytes) AS bytes,
    median(pure_ms) FILTER (NOT inside) AS pure_ms
  FROM placed
  GROUP BY port_id, job
),
within AS (
  SELECT port_id, job, ts, count(*) AS calls, median(pure_ms) AS pure_ms
  FROM placed
  WHERE inside
  GROUP BY port_id, job, ts
)
SELECT coalesce(e.job, r.job) AS job, r.device, r.port, r.ts_before, r.ts, r.counter, r.risen,
  e.op, e.bytes, coalesce(w.calls, 0) AS calls, w.pure_ms, e.pure_ms AS elsewhere_pure_ms,
  w.pure_ms / nullif(e.pure_ms, 0) AS pure_ratio
FROM error_rises r
JOIN sick s ON s.job IS NOT DISTINCT FROM r.job AND s.device IS NOT DISTINCT FROM r.device
  AND s.port IS NOT DISTINCT FROM r.port AND s.format IS NOT DISTINCT FROM r.format
  AND s.ts_before = r.ts_before AND s.ts = r.ts
LEFT JOIN elsewhere e ON e.port_id = s.port_id
LEFT JOIN within w ON w.port_id = s.port_id AND w.ts = s.ts AND w.job IS NOT DISTINCT FROM e.job
WHERE r.risen > 0
ORDER BY job, r.device, r.port, r.ts, r.counter;
