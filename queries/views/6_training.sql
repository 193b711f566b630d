-- One row a collective call: `pure_us` is the time of the rank that arrived last, the best estimate
-- of the transfer; the others waited for it. Rooted and point-to-point calls do not end together:
-- for them the rule does not hold, and they are left out.
CREATE OR REPLACE VIEW collective_calls AS
SELECT job, comm_id, any_value(comm_name) AS comm_name, op, seq, any_value(bytes) AS bytes,
  max(nranks) AS nranks, count(*) AS ranks_seen, count(*) = max(nranks) AS complete,
  max(nodes) AS nodes,
  min(duration_us) AS pure_us,
  max(duration_us) AS longest_us,
  sum(duration_us - shortest) AS wait_us,
  arg_min(rank, duration_us) AS last_rank,
  quantile_cont(duration_us, 0.5) - min(duration_us) AS lateness_us,
  max(ts) AS ts,
  CASE op WHEN 'AllReduce' THEN 2.0 * (max(nranks) - 1) / max(nranks) * any_value(bytes)
          ELSE 1.0 * (max(nranks) - 1) * any_value(bytes) END / min(duration_us) / 1000
    AS busbw_gbps
FROM (
  SELECT *, min(duration_us) OVER (PARTITION BY job, comm_id, op, seq) AS shortest
  FROM collectives
  WHERE duration_us > 0 AND op IN ('AllReduce', 'AllGather', 'ReduceScatter')
    AND timing_source IS DISTINCT FROM 'collective_cpu'
)
GROUP BY job, comm_id, op, seq;

-- Calls of the one collective that tells about the fabric: of the largest messages of each
-- communicator and op, the kind (op, bytes, ranks) the job spends most time in, those within one
-- host left out. `usual_ms` is the median of the whole run, its slow part included.
CREATE OR REPLACE VIEW main_collective AS
WITH sizes AS (
  SELECT * FROM collective_calls
  WHERE nodes IS DISTINCT FROM 1
  QUALIFY bytes = max(bytes) OVER (PARTITION BY job, comm_id, op)
),
kinds AS (
  SELECT job, op, bytes, nranks, median(pure_us) / 1000 AS usual_ms
  FROM sizes
  GROUP BY job, op, bytes, nranks
  QUALIFY row_number() OVER (
    PARTITION BY job ORDER BY sum(pure_us) DESC, op, bytes DESC, nranks DESC
  ) = 1
)
SELECT s.*, s.pure_us / 1000 AS pure_ms, k.usual_ms
FROM sizes s
JOIN kinds k ON s.job IS NOT DISTINCT FROM k.job AND s.op = k.op AND s.bytes = k.bytes
  AND s.nranks IS NOT DISTINCT FROM k.nranks;

-- The job's time of each step, from the best source it has: per-rank records (median over ranks),
-- the trainer's own line, or the difference of the lines' times. After a restart a step may stand
-- twice: the later attempt wins.
CREATE OR REPLACE VIEW step_times AS
WITH last_attempt AS (
  SELECT * FROM steps
  WHERE step IS NOT NULL
  QUALIFY row_number() OVER (
    PARTITION BY job, step, rank, step_time_ms IS NULL ORDER BY ts DESC NULLS LAST, line DESC
  ) = 1
),
by_rank AS (
  SELECT job, step, max(ts) AS ts, median(step_time_ms) AS step_time_ms, 1 AS preference,
    'per-rank records' AS source
  FROM last_attempt
  WHERE rank IS NOT NULL AND step_time_ms IS NOT NULL
  GROUP BY job, step
),
printed AS (
  SELECT job, step, ts, step_time_ms, 2 AS preference, 'trainer' AS source
  FROM last_attempt
  WHERE rank IS NULL AND step_time_ms IS NOT NULL
),
differences AS (
  SELECT job, step, ts,
    (epoch(ts) - epoch(lag(ts) OVER w)) * 1000 / nullif(step - lag(step) OVER w, 0) AS step_time_ms,
    3 AS preference, 'difference of times' AS source
  FROM (
    SELECT job, step, min(ts) AS ts FROM steps
    WHERE step_time_ms IS NULL AND ts IS NOT NULL AND step IS NOT NULL
    GROUP BY job, step
  )
  WINDOW w AS (PARTITION BY job ORDER BY step)
),
everything AS (
  SELECT * FROM by_rank
  UNION ALL SELECT * FROM printed
  UNION ALL SELECT * FROM differences WHERE step_time_ms > 0
),
best AS (
  SELECT job, preference
  FROM everything
  GROUP BY job, preference
  QUALIFY row_number() OVER (PARTITION BY job ORDER BY count(*) DESC, preference) = 1
)
SELECT e.job, e.step, e.ts, e.step_time_ms, e.source
FROM everything e
JOIN best b ON e.job IS NOT DISTINCT FROM b.job AND e.preference = b.preference;
