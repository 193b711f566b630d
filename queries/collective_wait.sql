-- question: How much of the collectives' time is transfer, and how much is waiting?
-- columns:
--   job           job
--   op            AllReduce, AllGather or ReduceScatter
--   bytes         message size, bytes
--   nranks        ranks of the communicator
--   calls         calls
--   pure_p50_ms   median time of the rank that arrived last: the transfer, ms
--   pure_p95_ms   95th percentile, ms
--   wait_p50_ms   median of the ranks' mean wait in a call, ms
--   wait_p95_ms   95th percentile, ms
--   wait_share    share of all ranks' time in these calls that was waiting, 0 to 1
-- example: fabricobs query collective_wait
--
-- A large wait_share points to uneven ranks (slowest_ranks names them), a large pure time to the
-- network. Where not all ranks were recorded, some waiting passes for transfer.
SELECT job, op, bytes, nranks, count(*) AS calls,
  quantile_cont(pure_us, 0.5) / 1000 AS pure_p50_ms,
  quantile_cont(pure_us, 0.95) / 1000 AS pure_p95_ms,
  quantile_cont(wait_us / ranks_seen, 0.5) / 1000 AS wait_p50_ms,
  quantile_cont(wait_us / ranks_seen, 0.95) / 1000 AS wait_p95_ms,
  sum(wait_us) / nullif(sum(wait_us + pure_us * ranks_seen), 0) AS wait_share
FROM collective_calls
GROUP BY job, op, bytes, nranks
ORDER BY job, sum(pure_us) DESC, op, bytes, nranks;
