-- question: Which rank came late to its collectives, where step records tell of few ranks' computation?
-- A rank that arrives late has the shorter collective: by how much its calls are shorter than those of the
-- median rank, it is late. Only differences of `own_ms`, what is left of a step, between the ranks of a group
-- (`stage`: communicators of the same ranks) mean anything. Of groups between hosts one kind is chosen: one with much
-- waiting for the last rank, the first in a step, and of those the one of most groups: a rank late in a small group
-- makes that group late in a larger one. Where a job has several of these, groups `within_host` tell, too: between hosts
-- all mates of a late rank are late with it, within the host it is late alone.
--
-- A step has all calls of a group that begin in it. Where each call lets the ranks go on together, the
-- lateness of its calls adds up. Where ranks compute on meanwhile, a call repeats the lateness of the one
-- before: then the call with most waiting tells. `step` is that of the trainer where its lines tell the
-- time of each step, else of the rhythm of the collectives (`by_rhythm`). Of a job whose rank numbers no
-- log tells, `rank` counts the processes by host and `pid` names each.
WITH recorded AS (
  SELECT job, count(DISTINCT rank) AS ranks FROM steps
  WHERE rank IS NOT NULL AND compute_ms IS NOT NULL
  GROUP BY job
),
-- Of a job whose records tell of fewer than half of its ranks, collectives tell more.
told AS (
  SELECT r.job FROM recorded r
  JOIN (SELECT job, max(nranks) AS nranks FROM collectives GROUP BY job) c ON c.job IS NOT DISTINCT FROM r.job
  WHERE 2 * r.ranks >= c.nranks
),
timed AS (
  SELECT c.job, c.comm_id, c.op, c.bytes, c.seq, c.nranks, c.nodes = 1 AS within_host, c.ts,
    c.duration_us / 1000 AS ms, host_name(c.host) AS host, c.pid, c.rank AS comm_rank,
    coalesce(c.global_rank, r.rank) AS job_rank
  FROM collectives c
  LEFT JOIN job_ranks r
    ON r.job IS NOT DISTINCT FROM c.job AND r.host = host_name(c.host) AND r.pid = c.pid
  WHERE c.duration_us > 0 AND c.nranks > 1
    AND c.op IN ('AllReduce', 'AllGather', 'ReduceScatter', 'All2All')
    AND c.timing_source IS DISTINCT FROM 'collective_cpu'
    AND NOT EXISTS (SELECT 1 FROM told t WHERE t.job IS NOT DISTINCT FROM c.job)
),
members AS (
  SELECT job, comm_id, string_agg(member, ' ' ORDER BY member) AS members
  FROM (
    SELECT DISTINCT job, comm_id,
      coalesce('rank ' || job_rank, host || ':' || pid, comm_id || ' ' || comm_rank) AS member
    FROM timed
  )
  GROUP BY job, comm_id
),
waits AS (
  SELECT t.job, t.comm_id, t.op, t.seq, t.nranks, t.within_host, m.members, sum(t.ms) AS total_ms,
    median(t.ms) AS usual_ms, median(t.ms) - min(t.ms) AS wait_ms,
    quantile_disc(t.ts, 0.5) - to_microseconds((1000 * min(t.ms))::BIGINT) AS begun
  FROM timed t
  JOIN members m ON m.job IS NOT DISTINCT FROM t.job AND m.comm_id IS NOT DISTINCT FROM t.comm_id
  GROUP BY ALL
),
kinds AS (
  SELECT job, nranks, within_host, count(DISTINCT members) AS groups,
    count(DISTINCT comm_id) AS communicators, sum(total_ms) AS total_ms, sum(wait_ms) AS wait_ms
  FROM waits
  GROUP BY job, nranks, within_host
),
between_hosts AS (
  SELECT job, max(groups) AS groups, max(wait_ms) AS wait_ms FROM kinds
  WHERE within_host IS DISTINCT FROM true GROUP BY job
),
candidates AS (
  SELECT k.* REPLACE (k.within_host IS NOT DISTINCT FROM true AS within_host),
    k.nranks >= 4 AND b.groups > 1 AS is_small, b.groups IS NULL AS is_alone, 2 * k.wait_ms >= b.wait_ms AS waits
  FROM kinds k
  LEFT JOIN between_hosts b ON b.job IS NOT DISTINCT FROM k.job
),
chosen AS (
  SELECT *, count(*) OVER (PARTITION BY job) AS kinds
  FROM (
    FROM candidates
    WHERE NOT within_host OR is_small OR is_alone
    QUALIFY row_number() OVER (
      PARTITION BY job, within_host ORDER BY waits DESC, groups DESC, total_ms DESC, nranks
    ) = 1
  )
),
lines AS (
  SELECT job, step, ts, step_time_ms, step - lag(step) OVER (PARTITION BY job ORDER BY step) AS steps
  FROM step_times
  WHERE ts IS NOT NULL AND source NOT LIKE 'collective%'
),
paces AS (
  SELECT r.job, count(r.step) AS rows, median(r.step_time_ms) AS ms, bool_or(r.are_calls) AS are_calls,
    any_value(l.rows) AS line_rows, any_value(l.ms) AS line_ms
  FROM collective_rhythm r
  LEFT JOIN (
    SELECT job, count(*) AS rows, median(step_time_ms) AS ms FROM lines GROUP BY job
  ) l ON l.job IS NOT DISTINCT FROM r.job
  GROUP BY r.job
),
-- The rhythm has the steps between two lines, where its steps take as long as those of the lines.
by_rhythm AS (
  SELECT job FROM paces
  WHERE line_rows IS NULL OR NOT are_calls AND rows > line_rows AND abs(ms / line_ms - 1) < 0.1
),
spans AS (
  SELECT r.job, r.step, r.ts, r.step_time_ms, 1 AS steps, true AS by_rhythm
  FROM collective_rhythm r SEMI JOIN by_rhythm b ON b.job IS NOT DISTINCT FROM r.job
  UNION ALL
  SELECT l.job, l.step, l.ts, l.step_time_ms, coalesce(l.steps, 1), false
  FROM lines l ANTI JOIN by_rhythm b ON b.job IS NOT DISTINCT FROM l.job
),
placed AS (
  SELECT w.job, c.within_host, w.comm_id, w.op, w.seq, w.members, w.usual_ms, w.wait_ms, w.begun,
    s.step, s.ts, s.step_time_ms, s.steps, s.by_rhythm
  FROM waits w
  JOIN chosen c ON c.job IS NOT DISTINCT FROM w.job AND c.nranks = w.nranks
    AND c.within_host = (w.within_host IS NOT DISTINCT FROM true)
  ASOF JOIN spans s ON coalesce(s.job, '') = coalesce(w.job, '') AND s.ts >= w.begun
),
rates AS (
  SELECT job, members, sum(calls_a_step) AS calls_a_step
  FROM (
    SELECT job, members, (max(seq) - min(seq) + 1) / (max(step) - min(step) + 1) AS calls_a_step
    FROM placed
    GROUP BY job, members, comm_id, op
  )
  GROUP BY job, members
),
calls AS (
  SELECT p.*, dense_rank() OVER (PARTITION BY p.job ORDER BY p.members) - 1 AS stage,
    greatest(1, least(p.steps, count(*) OVER s / r.calls_a_step)) AS covered, sum(p.usual_ms) OVER s AS all_ms,
    row_number() OVER (s ORDER BY p.wait_ms DESC, p.begun, p.op, p.seq) = 1 AS waits_most
  FROM placed p
  JOIN rates r ON r.job IS NOT DISTINCT FROM p.job AND r.members = p.members
  WINDOW s AS (PARTITION BY p.job, p.members, p.step)
),
late AS (
  SELECT c.job, c.within_host, c.stage, c.step, c.ts, c.step_time_ms, c.covered, c.by_rhythm, c.waits_most,
    c.usual_ms, c.all_ms, c.begun, t.host, t.pid, c.usual_ms - t.ms AS late_ms,
    -- Without the job's rank numbers those of its one communicator stand for them.
    coalesce(t.job_rank, CASE WHEN k.communicators = 1 AND k.kinds = 1 THEN t.comm_rank END) AS told_rank,
    dense_rank() OVER (PARTITION BY t.job ORDER BY t.host, t.pid) - 1 AS counted,
    bool_or(t.job_rank IS NOT NULL OR k.communicators = 1 AND k.kinds = 1 OR t.host IS NULL OR t.pid IS NULL)
      OVER (PARTITION BY t.job) AS is_told
  FROM timed t
  JOIN calls c ON c.job IS NOT DISTINCT FROM t.job AND c.comm_id IS NOT DISTINCT FROM t.comm_id
    AND c.op = t.op AND c.seq = t.seq
  JOIN chosen k ON k.job IS NOT DISTINCT FROM c.job AND k.within_host = c.within_host
),
ranked AS (
  SELECT *, CASE WHEN is_told THEN told_rank ELSE counted END AS rank FROM late
  WHERE told_rank IS NOT NULL OR NOT is_told
),
repeated AS (
  SELECT job, within_host, median(alike) > 0.5 AS is_repeated
  FROM (
    SELECT job, within_host, rank, corr(late_ms, before_ms) AS alike
    FROM (
      SELECT job, within_host, rank, late_ms, lag(late_ms) OVER (PARTITION BY job, stage, rank, step ORDER BY begun)
        AS before_ms
      FROM ranked
    )
    WHERE before_ms IS NOT NULL
    GROUP BY job, within_host, rank
  )
  WHERE isfinite(alike)
  GROUP BY job, within_host
)
SELECT r.job, r.within_host, r.step, r.rank, any_value(r.host) AS host, any_value(CASE WHEN NOT r.is_told THEN r.pid END) AS pid,
  r.stage, any_value(r.ts) AS ts, any_value(r.step_time_ms) AS step_time_ms,
  CASE WHEN any_value(p.is_repeated) THEN any_value(r.usual_ms - r.late_ms) FILTER (r.waits_most)
    ELSE (any_value(r.all_ms) - sum(r.late_ms)) / any_value(r.covered) END AS comm_ms,
  any_value(r.step_time_ms) - comm_ms AS own_ms,
  NULL::DOUBLE AS data_ms, any_value(r.by_rhythm) AS by_rhythm
FROM ranked r
LEFT JOIN repeated p ON p.job IS NOT DISTINCT FROM r.job AND p.within_host = r.within_host
WHERE r.step_time_ms > 0
GROUP BY r.job, r.within_host, r.stage, r.step, r.rank
ORDER BY r.job, r.within_host, r.step, r.rank
