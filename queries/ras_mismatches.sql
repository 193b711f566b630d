-- question: Which ranks has NCCL's RAS seen launch fewer or more operations than most of their communicator?
-- columns:
--   job             job
--   comm_id         communicator, by its hash
--   ts              when the report was made, where it says so
--   op              operation the counts are of; null where the report does not name it
--   rank            rank in the communicator
--   host            its host, as the report names it
--   pid             its process
--   last_enqueued   operations it has launched
--   peers_enqueued  operations most ranks of the communicator have launched
--   ahead           the difference: below 0 the others may wait for this rank
-- example: fabricobs query ras_mismatches
--
-- Counts of Send and Recv differ by nature and are left out. Counts are of launched operations:
-- ranks that hang in the same one do not differ.
WITH counted AS (
  SELECT *, count(*) OVER (PARTITION BY job, file_id, ts, comm_id, op, last_enqueued) AS alike
  FROM nccl_events
  WHERE kind = 'ras_count' AND op NOT IN ('Send', 'Recv', 'SendRecv')
),
-- Of two counts that as many ranks share, the larger one: the others wait for who is behind.
compared AS (
  SELECT job, comm_id, ts, op, rank, host, pid, last_enqueued,
    max_by(last_enqueued, (alike, last_enqueued))
      OVER (PARTITION BY job, file_id, ts, comm_id, op) AS peers_enqueued
  FROM counted
)
SELECT job, comm_id, ts, op, rank, host, pid, last_enqueued, peers_enqueued,
  last_enqueued - peers_enqueued AS ahead
FROM (
  SELECT job, comm_id, ts, op, rank, host, pid, last_enqueued, peers_enqueued FROM compared
  UNION ALL
  SELECT job, comm_id, ts, op, rank, host, pid, last_enqueued, peers_enqueued
  FROM nccl_events WHERE kind = 'ras_mismatch' AND rank IS NOT NULL
)
WHERE last_enqueued <> peers_enqueued
ORDER BY job, ahead, comm_id, ts, op, rank
