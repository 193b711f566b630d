-- One row a collective call: `pure_us` is the time of the rank that arrived last, the best estimate
-- of the transfer; the others waited for it. Rooted and point-to-point calls do not end together:
-- for them the rule does not hold, and they are left out.
CREATE OR REPLACE VIEW collective_calls AS
SELECT job, comm_id, any_value(comm_name) AS comm_name, op, seq, any_value(bytes) AS bytes,
  max(nranks) AS nranks, count(*) AS ranks_seen, count(*) = max(nranks) AS complete,
  max(nodes) AS nodes,
  min(duration_us) AS pure_us,
  max(duration_us) AS longest_us,
  sum(duration_us) - count(*) * min(duration_us) AS wait_us,
  arg_min(rank, duration_us) AS last_rank,
  quantile_cont(duration_us, 0.5) - min(duration_us) AS lateness_us,
  max(ts) AS ts,
  quantile_disc(ts, 0.5) AS middle_ts,
  CASE op WHEN 'AllReduce' THEN 2.0 * (max(nranks) - 1) / max(nranks) * any_value(bytes)
          ELSE 1.0 * (max(nranks) - 1) * any_value(bytes) END / min(duration_us) / 1000
    AS busbw_gbytes_per_s
FROM collectives
WHERE duration_us > 0 AND op IN ('AllReduce', 'AllGather', 'ReduceScatter')
  AND timing_source IS DISTINCT FROM 'collective_cpu'
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

-- Evaluations and checkpoints are at least so many steps apart. A judgement.
CREATE OR REPLACE MACRO least_steps_between_pauses() AS 10;

-- Steps by the rhythm of collectives: the calls of the communicator and op that the job spends most
-- time in, between hosts where there are any. Its gaps repeat after as many calls as a step has: the
-- first lag, to 500, at which they are correlated best. That lag is a step where its calls follow each
-- other at once or within `least_step_s`, or where it is too short to be the distance of checkpoints;
-- else each call is one. A step begins after a gap as long as one in so many is. Calls left out are
-- told by their numbers: a row stands for `steps` steps, of which one has the collectives of the row.
-- `transfer_ms` is the pure time of a step's calls, `bytes` the largest message. `are_calls` where the rhythm tells no steps.
CREATE OR REPLACE VIEW collective_rhythm AS
WITH calls AS (
  SELECT c.job, c.seq, c.bytes, c.middle_ts AS ts, c.pure_us / 1000 AS pure_ms,
    row_number() OVER w AS place, c.seq - lag(c.seq) OVER w AS distance,
    epoch(c.middle_ts) - epoch(lag(c.middle_ts) OVER w) AS gap
  FROM collective_calls c
  JOIN (
    SELECT job, comm_id, op FROM collective_calls
    WHERE middle_ts IS NOT NULL
    GROUP BY job, comm_id, op
    QUALIFY row_number() OVER (
      PARTITION BY job ORDER BY bool_or(nodes IS DISTINCT FROM 1) DESC, sum(pure_us) DESC, comm_id, op
    ) = 1
  ) m ON m.job IS NOT DISTINCT FROM c.job AND m.comm_id IS NOT DISTINCT FROM c.comm_id AND m.op = c.op
  WHERE c.middle_ts IS NOT NULL
  WINDOW w AS (PARTITION BY c.job ORDER BY c.middle_ts, c.seq)
),
usual AS (
  SELECT job, median(gap) AS gap, median(pure_ms / 1000 / nullif(gap, 0)) AS busy,
    min(distance) FILTER (distance > 0) AS distance
  FROM calls WHERE place > 1 GROUP BY job
),
told AS (
  SELECT job, place, ln(greatest(gap, 1e-6)) AS gap FROM calls WHERE place BETWEEN 2 AND 5001
),
repeats AS (
  SELECT a.job, b.place - a.place AS lag, corr(a.gap, b.gap) AS alike
  FROM told a JOIN told b ON b.job IS NOT DISTINCT FROM a.job AND b.place BETWEEN a.place + 1 AND a.place + 500
  GROUP BY a.job, b.place - a.place
  -- Three steps and more must show it.
  HAVING 3 * (b.place - a.place) <= (SELECT max(m.place) FROM told m WHERE m.job IS NOT DISTINCT FROM a.job)
),
periods AS (
  SELECT u.job, u.gap AS usual_s, u.distance,
    coalesce(min(r.lag) FILTER (
      u.gap < least_step_s() OR u.busy > 0.8 OR r.lag < least_steps_between_pauses()
    ), 1) AS calls,
    CASE WHEN calls > 1 THEN calls * coalesce(u.distance, 1) ELSE 1 END AS numbers
  FROM usual u
  LEFT JOIN (
    SELECT *, max(alike) OVER (PARTITION BY job) AS best FROM repeats
  ) r ON r.job IS NOT DISTINCT FROM u.job AND r.alike >= greatest(0.5, 0.9 * r.best)
  GROUP BY u.job, u.gap, u.distance
),
bounds AS (
  SELECT p.job, CASE WHEN p.calls > 1 THEN sqrt(
    c.gaps[greatest(1, len(c.gaps) - (len(c.gaps) // p.calls) // 2)]
    * greatest(c.gaps[(len(c.gaps) - len(c.gaps) // p.calls) // 2 + 1], 1e-6)
  ) ELSE 0 END AS gap
  FROM periods p
  JOIN (
    SELECT job, list(gap ORDER BY gap) FILTER (gap IS NOT NULL) AS gaps FROM calls GROUP BY job
  ) c ON c.job IS NOT DISTINCT FROM p.job
),
numbered AS (
  SELECT c.*, count(*) FILTER (c.gap >= b.gap) OVER (PARTITION BY c.job ORDER BY c.place) AS turn
  FROM calls c JOIN bounds b ON b.job IS NOT DISTINCT FROM c.job
),
turns AS (
  SELECT job, turn, max(ts) AS ts, sum(pure_ms) AS transfer_ms, max(bytes) AS bytes,
    min(seq) AS first_seq
  FROM numbered GROUP BY job, turn
),
spaced AS (
  SELECT t.job, t.turn, t.ts, t.transfer_ms, t.bytes, p.usual_s, p.calls,
    epoch(t.ts) - epoch(lag(t.ts) OVER w) AS seconds,
    greatest(1, round((t.first_seq - lag(t.first_seq) OVER w) / p.numbers)) AS steps
  FROM turns t JOIN periods p ON p.job IS NOT DISTINCT FROM t.job
  WINDOW w AS (PARTITION BY t.job ORDER BY t.turn)
)
SELECT job, (sum(steps) OVER w)::BIGINT AS step, ts, transfer_ms, bytes,
  1000 * seconds / steps AS step_time_ms, steps::BIGINT AS steps,
  calls = 1 AND usual_s < least_step_s() AS are_calls
FROM spaced
WINDOW w AS (PARTITION BY job ORDER BY turn);

-- The rhythm of the collectives, of jobs of which nothing else tells steps.
CREATE OR REPLACE VIEW collective_steps AS
SELECT job, step, ts, transfer_ms, bytes, step_time_ms, are_calls FROM collective_rhythm r
WHERE NOT EXISTS (SELECT 1 FROM steps o WHERE o.job IS NOT DISTINCT FROM r.job);

-- Steps of jobs whose logs tell how long steps took and not when: they are those of the rhythm of its collectives whose
-- lengths change from step to step as theirs do. `ahead` is by how many numbers the rhythm is ahead: the best of the 200
-- around those at which the first or the last of both meet. Where calls are far apart, a step has several rows of the
-- rhythm. `alike` is the correlation of the changes (of logarithms, cut at six times the usual one), `z` its distance from
-- none in standard errors (Fisher): six are asked, with 800 places tried, and no other place may have four fifths of it,
-- as one would where the lengths only repeat with checkpoints. Judgements.
CREATE OR REPLACE VIEW steps_by_rhythm AS
WITH untimed AS MATERIALIZED (
  SELECT job, step, median(step_time_ms) AS ms
  FROM steps s
  WHERE step IS NOT NULL AND step_time_ms > 0
    AND NOT EXISTS (SELECT 1 FROM steps d WHERE d.job IS NOT DISTINCT FROM s.job AND d.step IS NOT NULL AND d.ts IS NOT NULL)
  GROUP BY job, step
),
rhythm AS MATERIALIZED (
  SELECT job, step, ts FROM collective_rhythm r
  WHERE NOT are_calls AND EXISTS (SELECT 1 FROM untimed u WHERE u.job IS NOT DISTINCT FROM r.job)
),
lengths AS (
  SELECT *, lag(step) OVER (PARTITION BY job ORDER BY step) AS before FROM untimed
),
spans AS (
  SELECT u.job, u.first, u.last, r.first AS rhythm_first, r.last AS rhythm_last,
    unnest(list_distinct([1, greatest(1, round((r.last - r.first + 1) / (u.last - u.first + 1)))::BIGINT])) AS rows_a_step
  FROM (SELECT job, min(step) AS first, max(step) AS last FROM untimed GROUP BY job) u
  JOIN (SELECT job, min(step) AS first, max(step) AS last FROM rhythm GROUP BY job) r
    ON r.job IS NOT DISTINCT FROM u.job
),
bounds AS (
  SELECT job, rows_a_step, unnest(list_distinct(list_concat(
    range(rhythm_first - first * rows_a_step - 200, rhythm_first - first * rows_a_step + 201),
    range(rhythm_last - last * rows_a_step - 200, rhythm_last - last * rows_a_step + 201)))) AS ahead
  FROM spans
),
pairs AS (
  SELECT l.job, b.rows_a_step, b.ahead, l.step, ln(l.ms) AS told,
    ln((epoch(r.ts) - epoch(p.ts)) / (l.step - l.before)) AS seen
  FROM lengths l
  JOIN bounds b ON b.job IS NOT DISTINCT FROM l.job
  JOIN rhythm r ON r.job IS NOT DISTINCT FROM l.job AND r.step = l.step * b.rows_a_step + b.ahead
  JOIN rhythm p ON p.job IS NOT DISTINCT FROM l.job AND p.step = l.before * b.rows_a_step + b.ahead
  WHERE r.ts > p.ts
),
changes AS (
  SELECT job, rows_a_step, ahead, told - lag(told) OVER w AS told, seen - lag(seen) OVER w AS seen
  FROM pairs
  WINDOW w AS (PARTITION BY job, rows_a_step, ahead ORDER BY step)
),
cut AS (
  SELECT *, 6 * median(abs(told)) OVER w AS told_cut, 6 * median(abs(seen)) OVER w AS seen_cut
  FROM changes WHERE told IS NOT NULL
  WINDOW w AS (PARTITION BY job, rows_a_step, ahead)
),
fits AS (
  SELECT job, rows_a_step, ahead, count(*) AS n,
    corr(greatest(-told_cut, least(told_cut, told)), greatest(-seen_cut, least(seen_cut, seen))) AS alike,
    atanh(least(alike, 0.9999)) * sqrt(n - 3) AS z
  FROM cut GROUP BY job, rows_a_step, ahead
  HAVING count(*) >= 20
),
best AS (
  SELECT job, rows_a_step, ahead, z FROM fits
  WHERE alike >= 0.4 AND z >= 6
  QUALIFY row_number() OVER (PARTITION BY job ORDER BY z DESC, abs(ahead)) = 1
),
sure AS (
  SELECT b.job, b.rows_a_step, b.ahead
  FROM best b
  WHERE NOT EXISTS (
    SELECT 1 FROM fits f
    WHERE f.job IS NOT DISTINCT FROM b.job AND f.z > 0.8 * b.z
      AND (f.rows_a_step <> b.rows_a_step OR abs(f.ahead - b.ahead) > 2 * b.rows_a_step)
  )
)
SELECT u.job, u.step, r.ts
FROM untimed u
JOIN sure b ON b.job IS NOT DISTINCT FROM u.job
JOIN rhythm r ON r.job IS NOT DISTINCT FROM u.job AND r.step = u.step * b.rows_a_step + b.ahead;

-- When each step ended, by whichever log tells its time: another may tell more of the step. Steps end together on all
-- ranks: where clocks are apart, the (lower) median clock is that of the job, as it is of collectives.
CREATE OR REPLACE VIEW step_ends AS
SELECT job, step, quantile_disc(ts, 0.5) AS ts
FROM (
  SELECT job, step, ts FROM steps
  WHERE step IS NOT NULL AND ts IS NOT NULL
  QUALIFY row_number() OVER (PARTITION BY job, step, rank, file_id ORDER BY ts DESC, line DESC) = 1
)
GROUP BY job, step
UNION ALL
SELECT job, step, ts FROM steps_by_rhythm;

-- The job's time of each step, from the best source it has: per-rank records (median over ranks),
-- the trainer's own line, begin and end, the difference of the lines' times, or of the training
-- time they show, else the rhythm of its collectives (`collectives`, or `collective calls` where it tells no steps). After a restart a step may stand twice: the later attempt wins.
CREATE OR REPLACE VIEW step_times AS
WITH last_attempt AS (
  SELECT * FROM steps
  WHERE step IS NOT NULL
  QUALIFY row_number() OVER (
    PARTITION BY job, step, rank, step_time_ms IS NULL ORDER BY ts DESC NULLS LAST, line DESC
  ) = 1
),
by_rank AS (
  SELECT job, step, quantile_disc(ts, 0.5) AS ts, median(step_time_ms) AS step_time_ms, 1 AS preference,
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
  SELECT job, step, ts, step_time_ms, 6, CASE WHEN are_calls THEN 'collective calls' ELSE 'collectives' END
  FROM collective_steps WHERE step_time_ms > 0
),
best AS (
  SELECT job, preference
  FROM everything
  GROUP BY job, preference
  QUALIFY row_number() OVER (PARTITION BY job ORDER BY count(*) DESC, preference) = 1
)
SELECT e.job, e.step, coalesce(e.ts, d.ts) AS ts, e.step_time_ms, e.source
FROM everything e
JOIN best b ON e.job IS NOT DISTINCT FROM b.job AND e.preference = b.preference
LEFT JOIN step_ends d ON d.job IS NOT DISTINCT FROM e.job AND d.step = e.step;

-- How long each rank computed in each step, by traced operations and timers of trainers: those of computations,
-- else Megatron's forward-backward, in which ranks of one pipeline or tensor group wait for each other and look alike.
-- The log of a rank and that of its job may hold the same lines.
CREATE OR REPLACE VIEW operations_of_ranks AS
WITH of_files AS (
  SELECT job, step, rank, file_id, max(stage) AS stage, max(ts) AS ts,
    max(start_ms + duration_ms) - min(start_ms) AS step_time_ms,
    coalesce(sum(duration_ms) FILTER (phase ILIKE '%compute%'), sum(duration_ms) FILTER (phase = 'forward-backward'))
      AS compute_ms
  FROM phases
  WHERE step IS NOT NULL AND rank IS NOT NULL AND duration_ms IS NOT NULL
  GROUP BY job, step, rank, file_id
),
lengths AS (
  SELECT job, step, max(ts) AS ts, median(step_time_ms) AS step_time_ms FROM steps GROUP BY job, step
)
SELECT f.job, f.step, f.rank, max(f.stage) AS stage, coalesce(max(f.ts), any_value(l.ts)) AS ts,
  coalesce(max(f.step_time_ms), any_value(l.step_time_ms)) AS step_time_ms, max(f.compute_ms) AS compute_ms
FROM of_files f LEFT JOIN lengths l ON l.job IS NOT DISTINCT FROM f.job AND l.step = f.step
WHERE f.compute_ms > 0
GROUP BY f.job, f.step, f.rank;

-- What each rank did in each step, by its records: `compute_ms` as told, or the sum of forward, backward
-- and optimizer; `own_ms` all that it does before it calls its collectives, loading included. Where only
-- communication is told it is the rest of the step (`by_rest`). Of files that tell of one step of a rank each may
-- tell a part of it (rank 0 also has the trainer's log). A step done again after a restart counts once, as done last.
-- Where no step record tells of a job's own work, its operations do (view `operations_of_ranks`).
CREATE OR REPLACE VIEW rank_work AS
WITH several AS (
  SELECT job, rank FROM steps
  WHERE rank IS NOT NULL AND step IS NOT NULL
  GROUP BY job, rank HAVING count(DISTINCT file_id) > 1
),
-- Steps that a rank's one file tells again. To put all steps in order costs five times as much.
again AS (
  SELECT job, step, rank FROM steps
  WHERE rank IS NOT NULL AND step IS NOT NULL
  GROUP BY job, step, rank HAVING count(*) > 1
),
joined AS (
  SELECT job, step, rank, arg_max(host, place) AS host, arg_max(stage, place) AS stage, arg_max(ts, place) AS ts,
    arg_max(step_time_ms, place) AS step_time_ms, arg_max(compute_ms, place) AS compute_ms,
    arg_max(comm_ms, place) AS comm_ms, arg_max(data_ms, place) AS data_ms, arg_max(forward_ms, place) AS forward_ms,
    arg_max(backward_ms, place) AS backward_ms, arg_max(forward_backward_ms, place) AS forward_backward_ms,
    arg_max(optimizer_ms, place) AS optimizer_ms
  FROM (
    SELECT s.*, row(coalesce(s.ts, '-infinity'::TIMESTAMP), coalesce(s.line, 0)) AS place
    FROM steps s SEMI JOIN several m ON m.job IS NOT DISTINCT FROM s.job AND m.rank = s.rank
    WHERE s.step IS NOT NULL
  )
  GROUP BY job, step, rank
  UNION ALL
  SELECT job, step, rank, host, stage, ts, step_time_ms, compute_ms, comm_ms, data_ms, forward_ms, backward_ms,
    forward_backward_ms, optimizer_ms
  FROM steps s ANTI JOIN several m ON m.job IS NOT DISTINCT FROM s.job AND m.rank = s.rank
  ANTI JOIN again a ON a.job IS NOT DISTINCT FROM s.job AND a.step = s.step AND a.rank = s.rank
  WHERE rank IS NOT NULL AND step IS NOT NULL
  UNION ALL
  SELECT job, step, rank, host, stage, ts, step_time_ms, compute_ms, comm_ms, data_ms, forward_ms, backward_ms,
    forward_backward_ms, optimizer_ms
  FROM steps s ANTI JOIN several m ON m.job IS NOT DISTINCT FROM s.job AND m.rank = s.rank
  SEMI JOIN again a ON a.job IS NOT DISTINCT FROM s.job AND a.step = s.step AND a.rank = s.rank
  QUALIFY row_number() OVER (PARTITION BY job, step, rank ORDER BY ts DESC NULLS LAST, line DESC) = 1
),
told_jobs AS (
  SELECT DISTINCT job, true AS told FROM joined WHERE compute_ms IS NOT NULL
),
records AS NOT MATERIALIZED (
  SELECT *, coalesce(forward_ms + backward_ms, forward_backward_ms) + coalesce(optimizer_ms, 0) AS parts_ms FROM joined
),
-- Communication, or backward, may be told with or without the wait for the other ranks. With it, the
-- usual rank communicates longer than the last one when that is late and the step therefore longer: the
-- two change together from step to step. 3 / sqrt(n) is three times what chance gives; 0.3 is below what
-- healthy ranks show whose transfers vary little (0.4 to 0.7).
waits AS (
  SELECT job, step, median(step_time_ms) AS step_ms,
    median(coalesce(comm_ms, step_time_ms - parts_ms - coalesce(data_ms, 0)))
      - min(coalesce(comm_ms, step_time_ms - parts_ms - coalesce(data_ms, 0))) AS waited_ms
  FROM records r ANTI JOIN told_jobs t ON t.job IS NOT DISTINCT FROM r.job
  WHERE step_time_ms IS NOT NULL
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
  SELECT r.* REPLACE (CASE WHEN t.told THEN r.compute_ms WHEN s.at_all THEN r.parts_ms END AS compute_ms),
    CASE WHEN t.told IS NULL AND s.at_all AND r.parts_ms IS NULL
      AND r.comm_ms + coalesce(r.data_ms, 0) < r.step_time_ms THEN r.step_time_ms - r.comm_ms END AS rest_ms
  FROM records r
  LEFT JOIN told_jobs t ON t.job IS NOT DISTINCT FROM r.job
  LEFT JOIN (SELECT job, true AS at_all FROM shown) s ON s.job IS NOT DISTINCT FROM r.job
),
recorded AS (
  SELECT * EXCLUDE (parts_ms, rest_ms),
    coalesce(compute_ms + coalesce(data_ms, 0), rest_ms) AS own_ms, rest_ms IS NOT NULL AS by_rest
  FROM told_by
),
untold AS (
  FROM operations_of_ranks o
  WHERE NOT EXISTS (FROM recorded r WHERE r.own_ms IS NOT NULL AND r.job IS NOT DISTINCT FROM o.job)
)
FROM recorded r ANTI JOIN untold u ON u.job IS NOT DISTINCT FROM r.job AND u.step = r.step AND u.rank = r.rank
UNION ALL BY NAME
SELECT u.job, u.step, u.rank, r.host, coalesce(u.stage, r.stage) AS stage, u.ts, u.step_time_ms, u.compute_ms, r.comm_ms,
  r.data_ms, u.compute_ms AS own_ms, false AS by_rest
FROM untold u LEFT JOIN recorded r ON r.job IS NOT DISTINCT FROM u.job AND r.step = u.step AND r.rank = u.rank;
