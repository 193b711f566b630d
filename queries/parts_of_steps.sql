-- question: What did the time of a step go into, and did all ranks wait for data alike?
-- columns:
--   job               job
--   window_start      when the window begins, UTC
--   first_step        first step of the window
--   last_step         last step of the window
--   ranks             ranks that tell a part of their steps
--   step_ms           median step time, ms
--   compute_ms        median computation of a rank and step, ms
--   comm_ms           median communication, waiting for other ranks included, ms
--   data_ms           median wait for data, ms
--   least_data_ms     the same of the rank that waits least for data, ms
--   most_data_ms      the same of the rank that waits longest, ms
--   longest_waits     the rank that waits longest for data
-- lines:
--   steps   step_time_ms IS NOT NULL
-- peers:
--   steps   data_ms
-- example: fabricobs query parts_of_steps
--
-- A job has at most 30 windows, of equal numbers of steps. Where all ranks wait longer for data since one window,
-- the storage or the loader is slow; where one does, its host.
WITH told AS (
  SELECT job, step, rank, ts, step_time_ms, compute_ms, comm_ms, data_ms,
    dense_rank() OVER (PARTITION BY job ORDER BY step) - 1 AS place
  FROM rank_work
  WHERE coalesce(compute_ms, comm_ms, data_ms) IS NOT NULL
),
placed AS (
  SELECT *, place * least(30, max(place) OVER w + 1) // (max(place) OVER w + 1) AS part
  FROM told WINDOW w AS (PARTITION BY job)
),
by_rank AS (
  SELECT job, part, rank, median(data_ms) AS data_ms FROM placed GROUP BY job, part, rank
),
waits AS (
  SELECT job, part, min(data_ms) AS least_data_ms, max(data_ms) AS most_data_ms, arg_max(rank, data_ms) AS longest_waits
  FROM by_rank GROUP BY job, part
)
SELECT p.job, min(p.ts) AS window_start, min(p.step) AS first_step, max(p.step) AS last_step,
  count(DISTINCT p.rank) AS ranks, median(p.step_time_ms) AS step_ms, median(p.compute_ms) AS compute_ms,
  median(p.comm_ms) AS comm_ms, median(p.data_ms) AS data_ms, any_value(w.least_data_ms) AS least_data_ms,
  any_value(w.most_data_ms) AS most_data_ms, any_value(w.longest_waits) AS longest_waits
FROM placed p JOIN waits w ON w.job IS NOT DISTINCT FROM p.job AND w.part = p.part
GROUP BY p.job, p.part
ORDER BY p.job, p.part;
