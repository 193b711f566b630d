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
    AS busbw_gbytes_per_s
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

-- Calls of a collective so far apart are of one step each: layers and buckets of a step follow each
-- other within some 100 ms. A judgement.
CREATE OR REPLACE MACRO least_step_s() AS 0.25;

-- Steps by the rhythm of collectives, for jobs of which nothing else tells steps: the calls of one
-- communicator of the main collective up to a gap of half the usual one. That is the median where
-- each call is a step, else the gap below which half of the time lies. Calls left out between two are told by their numbers: gaps are of one call.
-- `transfer_ms` is the pure time of a step's calls.
CREATE OR REPLACE VIEW collective_steps AS
WITH calls AS (
  SELECT job, comm_id, seq, ts, pure_ms, seq - lag(seq) OVER w AS distance,
    epoch(ts) - epoch(lag(ts) OVER w) AS seconds
  FROM (
    SELECT job, comm_id, seq, ts, pure_ms, count(*) OVER (PARTITION BY job, comm_id) AS calls
    FROM main_collective WHERE ts IS NOT NULL
  )
  WINDOW w AS (PARTITION BY job, comm_id ORDER BY ts, seq)
  QUALIFY comm_id = first_value(comm_id) OVER (PARTITION BY job ORDER BY calls DESC, comm_id)
),
spaced AS (
  SELECT *, CASE WHEN distance > 0
    THEN seconds * min(distance) FILTER (distance > 0) OVER (PARTITION BY job) / distance
    ELSE seconds END AS gap
  FROM calls
),
usual AS (
  SELECT job, CASE WHEN median(gap) >= least_step_s() THEN median(gap)
    ELSE min(gap) FILTER (below >= whole / 2) END AS gap
  FROM (
    SELECT job, gap, sum(gap) OVER (PARTITION BY job ORDER BY gap) AS below,
      sum(gap) OVER (PARTITION BY job) AS whole
    FROM spaced
  ) GROUP BY job
),
numbered AS (
  SELECT c.job, c.ts, c.pure_ms, c.gap, count(*) FILTER (c.gap >= u.gap / 2)
    OVER (PARTITION BY c.job ORDER BY c.ts, c.seq) AS step
  FROM spaced c JOIN usual u ON u.job IS NOT DISTINCT FROM c.job
)
SELECT job, step, max(ts) AS ts, sum(pure_ms) AS transfer_ms, 1000 * sum(gap) AS step_time_ms
FROM numbered
WHERE NOT EXISTS (SELECT 1 FROM steps o WHERE o.job IS NOT DISTINCT FROM numbered.job)
GROUP BY job, step;

-- The job's time of each step, from the best source it has: per-rank records (median over ranks),
-- the trainer's own line, begin and end, the difference of the lines' times, or of the training
-- time they show, else the rhythm of its collectives. After a restart a step may stand twice: the later attempt wins.
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
begun AS (
  SELECT job, step, max(ts) AS ts, median(epoch(ts) - epoch(started)) * 1000 AS step_time_ms,
    3 AS preference, 'begin and end' AS source
  FROM last_attempt
  WHERE step_time_ms IS NULL AND started < ts
  GROUP BY job, step
),
differences AS (
  SELECT job, step, ts,
    (epoch(ts) - epoch(lag(ts) OVER w)) * 1000 / nullif(step - lag(step) OVER w, 0) AS step_time_ms,
    4 AS preference, 'difference of times' AS source
  FROM (
    SELECT job, step, min(ts) AS ts FROM steps
    WHERE step_time_ms IS NULL AND ts IS NOT NULL AND step IS NOT NULL
    GROUP BY job, step
  )
  WINDOW w AS (PARTITION BY job ORDER BY step)
),
-- A file may hold the bars of other loops: training is the one with the most steps.
bars AS (
  SELECT job, total_steps
  FROM steps
  WHERE step_time_ms IS NULL AND elapsed_ms IS NOT NULL AND step IS NOT NULL
  GROUP BY job, total_steps
  QUALIFY row_number() OVER (PARTITION BY job ORDER BY count(DISTINCT step) DESC, total_steps) = 1
),
bar_lines AS (
  SELECT s.job, s.step, s.ts, s.elapsed_ms, s.file_id, s.line
  FROM steps s
  JOIN bars b ON s.job IS NOT DISTINCT FROM b.job
    AND s.total_steps IS NOT DISTINCT FROM b.total_steps
  WHERE s.step_time_ms IS NULL AND s.elapsed_ms IS NOT NULL AND s.step IS NOT NULL
),
-- A bar begins anew with every epoch, and every file has its own: no interval crosses either. Lines
-- of several ranks alternate, so that only a fall to less than half is a new beginning.
turned AS (
  SELECT *, coalesce(file_id IS DISTINCT FROM lag(file_id) OVER w
    OR (step < lag(step) OVER w / 2 AND elapsed_ms < lag(elapsed_ms) OVER w / 2), false) AS anew
  FROM bar_lines
  WINDOW w AS (PARTITION BY job ORDER BY file_id, line, step)
),
clocked AS (
  SELECT job, turn, step, max(ts) AS ts, arg_max(elapsed_ms, line) AS elapsed_ms
  FROM (
    SELECT *, count(*) FILTER (anew) OVER (PARTITION BY job ORDER BY file_id, line, step) AS turn
    FROM turned
  )
  GROUP BY job, turn, step
),
-- A clock of whole seconds needs some 20 s to tell a pace to 5 %: short steps share an interval.
paced AS (
  SELECT *,
    CASE WHEN bool_and(elapsed_ms % 1000 = 0) OVER j
      THEN greatest(1, ceil(20000 * (max(step) OVER j - min(step) OVER j)
        / nullif(max(elapsed_ms) OVER j - min(elapsed_ms) OVER j, 0)
        * count(*) OVER j / (1 + max(step) OVER j - min(step) OVER j)))
      ELSE 1
    END::INTEGER AS span
  FROM clocked
  WINDOW j AS (PARTITION BY job, turn)
),
clock_differences AS (
  SELECT job, step, ts,
    (elapsed_ms - lag(elapsed_ms, span) OVER w) / nullif(step - lag(step, span) OVER w, 0)
      AS step_time_ms,
    5 AS preference, 'difference of training time' AS source
  FROM paced
  WINDOW w AS (PARTITION BY job, turn ORDER BY step)
  QUALIFY row_number() OVER (PARTITION BY job, step ORDER BY turn DESC) = 1
),
everything AS (
  SELECT * FROM by_rank
  UNION ALL SELECT * FROM printed
  UNION ALL SELECT * FROM begun
  UNION ALL SELECT * FROM differences WHERE step_time_ms > 0
  UNION ALL SELECT * FROM clock_differences WHERE step_time_ms > 0
  UNION ALL
  SELECT job, step, ts, step_time_ms, 6, 'collectives' FROM collective_steps WHERE step_time_ms > 0
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

-- What each rank did in each step, by its records: `compute_ms` as told, or the sum of forward, backward
-- and optimizer; `own_ms` all that it does before it calls its collectives, loading included. Where only
-- communication is told it is the rest of the step (`by_rest`). Of files that tell of one step of a rank each may
-- tell a part of it (rank 0 also has the trainer's log). A step done again after a restart counts once, as done last.
CREATE OR REPLACE VIEW rank_work AS
WITH joined AS (
  SELECT job, step, rank, arg_max(host, place) AS host, arg_max(stage, place) AS stage, arg_max(ts, place) AS ts,
    arg_max(step_time_ms, place) AS step_time_ms, arg_max(compute_ms, place) AS compute_ms,
    arg_max(comm_ms, place) AS comm_ms, arg_max(data_ms, place) AS data_ms, arg_max(forward_ms, place) AS forward_ms,
    arg_max(backward_ms, place) AS backward_ms, arg_max(optimizer_ms, place) AS optimizer_ms
  FROM (
    SELECT *, row(coalesce(ts, '-infinity'::TIMESTAMP), coalesce(line, 0)) AS place FROM steps
    WHERE rank IS NOT NULL AND step IS NOT NULL
  )
  GROUP BY job, step, rank
),
records AS (
  SELECT *, forward_ms + backward_ms + coalesce(optimizer_ms, 0) AS parts_ms,
    count(compute_ms) OVER (PARTITION BY job) > 0 AS told
  FROM joined
),
-- Communication, or backward, may be told with or without the wait for the other ranks. With it, the
-- usual rank communicates longer than the last one when that is late and the step therefore longer: the
-- two change together from step to step. 3 / sqrt(n) is three times what chance gives; 0.3 is below what
-- healthy ranks show whose transfers vary little (0.4 to 0.7).
waits AS (
  SELECT job, step, median(step_time_ms) AS step_ms,
    median(coalesce(comm_ms, step_time_ms - parts_ms - coalesce(data_ms, 0)))
      - min(coalesce(comm_ms, step_time_ms - parts_ms - coalesce(data_ms, 0))) AS waited_ms
  FROM records
  WHERE NOT told AND step_time_ms IS NOT NULL
  GROUP BY job, step
  HAVING count(*) >= 4
),
changes AS (
  SELECT job, step_ms - lag(step_ms) OVER w AS step_ms, waited_ms - lag(waited_ms) OVER w AS waited_ms
  FROM waits
  WHERE waited_ms IS NOT NULL
  WINDOW w AS (PARTITION BY job ORDER BY step)
),
shown AS (
  SELECT job
  FROM (
    SELECT job, rank() OVER (PARTITION BY job ORDER BY step_ms) AS step_ms,
      rank() OVER (PARTITION BY job ORDER BY waited_ms) AS waited_ms
    FROM changes
    WHERE step_ms IS NOT NULL AND waited_ms IS NOT NULL
  )
  GROUP BY job
  HAVING corr(step_ms, waited_ms) >= greatest(0.3, 3 / sqrt(count(*)))
),
told_by AS (
  SELECT r.* REPLACE (CASE WHEN r.told THEN r.compute_ms WHEN s.at_all THEN r.parts_ms END AS compute_ms),
    CASE WHEN NOT r.told AND s.at_all AND r.parts_ms IS NULL
      AND r.comm_ms + coalesce(r.data_ms, 0) < r.step_time_ms THEN r.step_time_ms - r.comm_ms END AS rest_ms
  FROM records r
  LEFT JOIN (SELECT job, true AS at_all FROM shown) s ON s.job IS NOT DISTINCT FROM r.job
)
SELECT * EXCLUDE (parts_ms, told, rest_ms),
  coalesce(compute_ms + coalesce(data_ms, 0), rest_ms) AS own_ms, rest_ms IS NOT NULL AS by_rest
FROM told_by;
