-- question: How long did the steps of one side take, and where did their time go?
-- columns:
--   step             Step number
--   step_time_ms     Time of the step, ms
--   compute_ms       Computation of the median rank, ms
--   longest_compute_ms  Computation of the slowest rank, ms
--   exposed_comm_ms  Exposed communication of the rank that waits least: the transfer, ms
--   comm_ms          Exposed communication of the median rank, its waiting included, ms
--   data_ms          Wait for data of the median rank, ms
WITH covered AS (
  SELECT step, step_time_ms FROM step_times
  WHERE job IS NOT DISTINCT FROM $job::VARCHAR
    AND step BETWEEN $first_step::BIGINT AND $last_step::BIGINT
),
by_rank AS (
  SELECT step, rank, max(compute_ms) AS compute_ms, max(comm_ms) AS comm_ms, max(data_ms) AS data_ms
  FROM steps
  WHERE job IS NOT DISTINCT FROM $job::VARCHAR AND rank IS NOT NULL
    AND step BETWEEN $first_step::BIGINT AND $last_step::BIGINT
  GROUP BY step, rank
),
split AS (
  SELECT step, median(compute_ms) AS compute_ms, max(compute_ms) AS longest_compute_ms,
    min(comm_ms) AS exposed_comm_ms, median(comm_ms) AS comm_ms, median(data_ms) AS data_ms
  FROM by_rank
  GROUP BY step
)
SELECT c.step, c.step_time_ms, s.* EXCLUDE (step)
FROM covered c LEFT JOIN split s ON s.step = c.step
ORDER BY c.step
