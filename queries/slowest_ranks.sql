-- question: Which ranks arrive last in collectives, and who waits for whom?
-- columns:
--   job              job
--   rank             rank in the job
--   host             host
--   calls            collective calls it took part in
--   last_calls       calls in which it arrived last
--   last_share       last_calls over calls
--   expected_share   share if all ranks were alike: 1 over the ranks of the call
--   caused_wait_ms   mean wait of each other rank in the calls in which it arrived last, ms
--   waited_ms        its own mean wait in the other calls, ms
--   waited_for       rank it waited for longest in all
--   compute_ms       median compute time of a step, or all but communication where only that is told, ms
--   compute_ratio    compute_ms over the median of its peers, the ranks of its stage
--   comm_ms          median exposed communication of a step, waiting included, ms
--   comm_ratio       comm_ms over the median of its peers
-- lines:
--   steps         compute_ms IS NOT NULL OR comm_ms IS NOT NULL
--   collectives   true
-- peers:
--   steps   compute_ms
-- example: fabricobs query slowest_ranks
--
-- The rank that arrives last has the SHORTEST collective: long communication marks those who wait.
-- A straggler has last_share far above expected_share, compute_ratio above 1 and comm_ratio below 1.
-- A slow network raises comm_ms of all ranks alike.
-- Ranks of a communicator go by their rank in the job where the trace or, by process, NCCL's log
-- names it; else only those of a communicator that no other equals in size.
WITH largest AS (
  SELECT job, nranks
  FROM (SELECT DISTINCT job, comm_id, nranks FROM collectives)
  WHERE nranks IS NOT NULL
  GROUP BY job, nranks
  QUALIFY nranks = max(nranks) OVER (PARTITION BY job) AND count(*) = 1
),
members AS (
  SELECT DISTINCT c.job, c.comm_id, c.rank AS comm_rank, c.host,
    coalesce(c.global_rank, r.rank, CASE WHEN NOT EXISTS (
      SELECT 1 FROM ranks k WHERE k.job IS NOT DISTINCT FROM c.job AND k.nranks > c.nranks
    ) AND c.nranks = l.nranks THEN c.rank END) AS rank
  FROM (
    -- A trace that names no group of a call (nranks null) may mix several: its ranks stay unnamed.
    SELECT DISTINCT job, comm_id, rank, nranks, host, pid,
      CASE WHEN nranks IS NOT NULL THEN global_rank END AS global_rank
    FROM collectives
  ) c
  LEFT JOIN largest l ON l.job IS NOT DISTINCT FROM c.job
  LEFT JOIN job_ranks r
    ON r.job IS NOT DISTINCT FROM c.job AND r.host = c.host AND r.pid = c.pid
),
arrivals AS (
  SELECT c.job, m.rank, last.rank AS last_rank, c.ranks_seen,
    d.rank = c.last_rank AS arrived_last,
    (d.duration_us - c.pure_us) / 1000 AS waited_ms,
    c.wait_us / (c.ranks_seen - 1) / 1000 AS others_waited_ms
  FROM collective_calls c
  JOIN collectives d ON d.job IS NOT DISTINCT FROM c.job AND d.comm_id = c.comm_id
    AND d.op = c.op AND d.seq = c.seq
  JOIN members m ON m.job IS NOT DISTINCT FROM c.job AND m.comm_id = c.comm_id
    AND m.comm_rank = d.rank
  JOIN members last ON last.job IS NOT DISTINCT FROM c.job AND last.comm_id = c.comm_id
    AND last.comm_rank = c.last_rank
  WHERE c.ranks_seen > 1 AND d.duration_us > 0
    AND d.timing_source IS DISTINCT FROM 'collective_cpu'
),
lateness AS (
  SELECT job, rank, count(*) AS calls,
    count(*) FILTER (arrived_last) AS last_calls,
    avg(1 / ranks_seen) AS expected_share,
    avg(others_waited_ms) FILTER (arrived_last) AS caused_wait_ms,
    sum(others_waited_ms) FILTER (arrived_last) AS caused_wait_in_all_ms,
    avg(waited_ms) FILTER (NOT arrived_last) AS waited_ms
  FROM arrivals
  WHERE rank IS NOT NULL
  GROUP BY job, rank
),
waits AS (
  SELECT job, rank, last_rank AS waited_for
  FROM arrivals
  WHERE NOT arrived_last AND rank IS NOT NULL AND last_rank IS NOT NULL
  GROUP BY job, rank, last_rank
  QUALIFY row_number() OVER (PARTITION BY job, rank ORDER BY sum(waited_ms) DESC, last_rank) = 1
),
own_steps AS (
  SELECT job, rank, max(host) AS host, max(coalesce(stage, 0)) AS stage,
    median(coalesce(compute_ms, own_ms)) AS compute_ms, median(comm_ms) AS comm_ms
  FROM rank_work
  GROUP BY job, rank
),
compared AS (
  SELECT *,
    compute_ms / nullif(median(compute_ms) OVER w, 0) AS compute_ratio,
    comm_ms / nullif(median(comm_ms) OVER w, 0) AS comm_ratio
  FROM own_steps
  WINDOW w AS (PARTITION BY job, stage)
),
everyone AS (
  SELECT job, rank, max(host) AS host
  FROM (
    SELECT job, rank, host FROM job_ranks WHERE rank IS NOT NULL
    UNION ALL SELECT job, rank, host FROM members WHERE rank IS NOT NULL
    UNION ALL SELECT job, rank, host FROM own_steps
  )
  GROUP BY job, rank
)
SELECT e.job, e.rank, e.host, l.calls, l.last_calls, l.last_calls / l.calls AS last_share,
  l.expected_share, l.caused_wait_ms, l.waited_ms, w.waited_for,
  s.compute_ms, s.compute_ratio, s.comm_ms, s.comm_ratio
FROM everyone e
LEFT JOIN lateness l ON l.job IS NOT DISTINCT FROM e.job AND l.rank = e.rank
LEFT JOIN waits w ON w.job IS NOT DISTINCT FROM e.job AND w.rank = e.rank
LEFT JOIN compared s ON s.job IS NOT DISTINCT FROM e.job AND s.rank = e.rank
ORDER BY e.job, l.caused_wait_in_all_ms DESC NULLS LAST, s.compute_ratio DESC NULLS LAST, e.rank;
