-- question: Which rank came late to its collectives, where step records tell of few ranks' computation?
-- A rank that arrives late has the shorter collective: `own_ms` is the time between two calls less
-- the duration of this one, and only its differences between the ranks of a communicator (`stage`)
-- mean anything. One kind of call is chosen. Where a job has groups within hosts and several between
-- them, those within hosts tell: between hosts all mates of a late rank are late with it. Else it is
-- a kind with much waiting for the last rank, the first in a step, and of those the one of most
-- groups: a rank late in a small group makes that group late in a larger one. `step` counts the
-- calls. Of a job whose rank numbers no log tells, `rank` counts the processes by host and `pid`
-- names each.
WITH recorded AS (
  SELECT job, count(DISTINCT rank) AS ranks FROM steps
  WHERE rank IS NOT NULL AND compute_ms IS NOT NULL
  GROUP BY job
),
-- Of a job whose records tell of fewer than half of its ranks, collectives tell more.
told AS (
  SELECT r.job FROM recorded r
  JOIN collectives c ON c.job IS NOT DISTINCT FROM r.job
  GROUP BY r.job, r.ranks
  HAVING 2 * r.ranks >= max(c.nranks)
),
timed AS (
  SELECT c.job, c.comm_id, c.op, c.bytes, c.seq, c.nranks, c.nodes, c.ts, c.duration_us, c.host, c.pid,
    c.rank AS comm_rank,
    coalesce(c.global_rank, r.rank) AS job_rank
  FROM collectives c
  LEFT JOIN job_ranks r
    ON r.job IS NOT DISTINCT FROM c.job AND r.host = host_name(c.host) AND r.pid = c.pid
  WHERE c.duration_us > 0 AND c.nranks > 1
    AND c.op IN ('AllReduce', 'AllGather', 'ReduceScatter', 'All2All')
    AND c.timing_source IS DISTINCT FROM 'collective_cpu'
    AND NOT EXISTS (SELECT 1 FROM told t WHERE t.job IS NOT DISTINCT FROM c.job)
),
waits AS (
  SELECT job, op, bytes, nranks, nodes = 1 AS within_host, comm_id,
    sum(duration_us) AS total_us, median(duration_us) - min(duration_us) AS wait_us
  FROM timed
  GROUP BY job, op, bytes, nranks, nodes = 1, comm_id, seq
),
kinds AS (
  SELECT job, op, bytes, nranks, within_host, count(DISTINCT comm_id) AS groups,
    sum(total_us) AS total_us, sum(wait_us) AS wait_us
  FROM waits
  GROUP BY ALL
),
between_hosts AS (
  SELECT job, max(groups) AS groups FROM kinds WHERE within_host IS DISTINCT FROM true GROUP BY job
),
most AS (
  SELECT job, max(wait_us) AS wait_us FROM kinds WHERE within_host IS DISTINCT FROM true GROUP BY job
),
chosen AS (
  SELECT k.*
  FROM kinds k
  LEFT JOIN between_hosts b ON b.job IS NOT DISTINCT FROM k.job
  LEFT JOIN most m ON m.job IS NOT DISTINCT FROM k.job
  QUALIFY row_number() OVER (
    PARTITION BY k.job
    ORDER BY (k.within_host AND k.nranks >= 4 AND b.groups > 1) DESC NULLS LAST,
      k.within_host IS DISTINCT FROM true DESC, 2 * k.wait_us >= m.wait_us DESC, k.groups DESC,
      total_us DESC, k.op, k.bytes
  ) = 1
),
calls AS (
  SELECT t.*, dense_rank() OVER (PARTITION BY t.job, t.comm_id ORDER BY t.seq) AS step,
    dense_rank() OVER (PARTITION BY t.job ORDER BY t.comm_id) - 1 AS stage,
    -- Without the job's rank numbers those of its one communicator stand for them.
    coalesce(t.job_rank, CASE WHEN c.groups = 1 THEN t.comm_rank END) AS told_rank,
    dense_rank() OVER (PARTITION BY t.job ORDER BY t.host, t.pid) - 1 AS counted,
    bool_or(t.job_rank IS NOT NULL OR c.groups = 1 OR t.host IS NULL OR t.pid IS NULL)
      OVER (PARTITION BY t.job) AS is_told
  FROM timed t
  JOIN chosen c ON c.job IS NOT DISTINCT FROM t.job AND c.op = t.op AND c.nranks = t.nranks
    AND c.bytes IS NOT DISTINCT FROM t.bytes
    AND c.within_host IS NOT DISTINCT FROM (t.nodes = 1)
),
gaps AS (
  -- Calls left out between two are told by their numbers: gaps are of one call.
  SELECT job, seconds * min(distance) OVER (PARTITION BY job, comm_id) / distance AS gap
  FROM (
    SELECT job, comm_id, epoch(max(ts)) - epoch(lag(max(ts)) OVER w) AS seconds,
      seq - lag(seq) OVER w AS distance
    FROM calls GROUP BY job, comm_id, seq
    WINDOW w AS (PARTITION BY job, comm_id ORDER BY seq)
  )
  WHERE distance > 0 AND seconds > 0
),
periods AS (
  -- Calls a step or more apart are a step each: longer gaps are pauses, as for a checkpoint.
  SELECT job, 1000 * avg(gap) FILTER (usual < least_step_s() OR gap <= 2.5 * usual) AS period_ms
  FROM (SELECT job, gap, median(gap) OVER (PARTITION BY job) AS usual FROM gaps)
  GROUP BY job
)
SELECT c.job, c.step, CASE WHEN c.is_told THEN c.told_rank ELSE c.counted END AS rank,
  host_name(c.host) AS host, CASE WHEN NOT c.is_told THEN c.pid END AS pid, c.stage, c.ts,
  p.period_ms AS step_time_ms, p.period_ms - c.duration_us / 1000 AS own_ms,
  c.duration_us / 1000 AS comm_ms, NULL::DOUBLE AS data_ms
FROM calls c
JOIN periods p ON p.job IS NOT DISTINCT FROM c.job
WHERE (c.told_rank IS NOT NULL OR NOT c.is_told) AND p.period_ms > 0
ORDER BY c.job, c.step, rank
