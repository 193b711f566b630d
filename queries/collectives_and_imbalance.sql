-- question: Do collectives take longer while a switch's uplinks are unevenly loaded (ECMP skew)?
-- columns:
--   job              job of the collectives, else of the counters
--   uplink_group     equal-cost links of one switch
--   ts_before        begin of the counter interval, UTC
--   ts               end of the counter interval, UTC
--   links            links with counters in the interval
--   tx_gbps          sent by the group, Gb/s; null where no source counts bytes
--   imbalance        busiest link over the mean, minus 1; 0 is even
--   jain             Jain's fairness index: 1 is even, 1/links is one link alone
--   top_half_share   share of the busier half of the links; 0.5 is even
--   op               collective compared
--   bytes            its message size, bytes
--   calls            calls that end in the interval
--   pure_ms          median time of the rank that arrived last, ms
--   pure_ratio       pure_ms over the median of the whole run
-- example: fabricobs query collectives_and_imbalance
--
-- Collectives: of the largest messages of each communicator and op, the kind (op, bytes, ranks) the
-- job spends most time in; those within one host are left out.
-- Hashing few large flows is uneven by nature: imbalance alone is no fault. Look for a pure_ratio
-- that moves with it. Hardly loaded links look most uneven: mind tx_gbps.
WITH calls AS (
  SELECT job, op, bytes, ts, pure_ms, usual_ms FROM main_collective WHERE ts IS NOT NULL
),
intervals AS (SELECT * FROM uplink_intervals WHERE links > 1),
timed AS (
  SELECT i.job, i.ts_before, i.ts, c.job AS job_of_calls,
    any_value(c.op) AS op,
    any_value(c.bytes) AS bytes,
    count(*) AS calls,
    median(c.pure_ms) AS pure_ms,
    median(c.pure_ms) / nullif(any_value(c.usual_ms), 0) AS pure_ratio
  FROM (SELECT DISTINCT job, ts_before, ts FROM intervals) i
  JOIN calls c ON c.ts > i.ts_before AND c.ts <= i.ts
    AND (i.job IS NULL OR i.job IS NOT DISTINCT FROM c.job)
  GROUP BY i.job, i.ts_before, i.ts, c.job
)
SELECT coalesce(t.job_of_calls, u.job) AS job, u.uplink_group, u.ts_before, u.ts, u.links,
  u.tx_gbps, u.imbalance, u.jain, u.top_half_share, t.op, t.bytes,
  coalesce(t.calls, 0) AS calls, t.pure_ms, t.pure_ratio
FROM intervals u
LEFT JOIN timed t ON t.job IS NOT DISTINCT FROM u.job AND t.ts_before = u.ts_before AND t.ts = u.ts
ORDER BY job, u.uplink_group, u.ts, u.ts_before;
