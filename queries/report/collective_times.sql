-- question: How long did the transfers take of the collective that $job spends most time in?
-- Without a job, over all jobs. Calls are joined to at most $most points.
-- columns:
--   op          AllReduce, AllGather or ReduceScatter
--   bytes       Message size, bytes
--   nranks      Ranks of the communicator
--   first_call  Number of the first call of the point
--   calls       Calls in the point
--   moment      When the first of them was measured, UTC
--   pure_us     Median transfer: the time of the rank that arrived last, us
--   low_us      10th percentile of it, us
--   high_us     90th percentile of it, us
--   wait_us     Median of the mean time a rank waited for the last one, us
WITH calls AS (
  SELECT * FROM collective_calls
  WHERE nodes IS DISTINCT FROM 1 AND ($job::VARCHAR IS NULL OR job = $job::VARCHAR)
),
longest AS (
  SELECT job, comm_id, op, bytes FROM calls
  GROUP BY job, comm_id, op, bytes
  ORDER BY sum(pure_us) DESC, job, comm_id, op, bytes
  LIMIT 1
),
placed AS (
  SELECT c.*, row_number() OVER (ORDER BY c.seq) - 1 AS place, count(*) OVER () AS number
  FROM calls c
  JOIN longest l ON c.job IS NOT DISTINCT FROM l.job AND c.comm_id IS NOT DISTINCT FROM l.comm_id
    AND c.op = l.op AND c.bytes IS NOT DISTINCT FROM l.bytes
)
SELECT any_value(op) AS op, any_value(bytes) AS bytes, max(nranks) AS nranks,
  min(seq) AS first_call, count(*) AS calls, min(ts) AS moment,
  median(pure_us) AS pure_us, quantile_cont(pure_us, 0.1) AS low_us,
  quantile_cont(pure_us, 0.9) AS high_us, median(wait_us / ranks_seen) AS wait_us
FROM placed
GROUP BY place * least($most, number) // number
ORDER BY first_call
