-- question: How long did the collectives of one side take, call by call? Those within a host are left out.
-- columns:
--   op                  AllReduce, AllGather or ReduceScatter
--   bytes               Message size, bytes
--   nranks              Ranks of the communicator
--   pure_us             Transfer: the time of the rank that arrived last, us
--   wait_us             Mean wait of a rank for the last one, us
--   busbw_gbytes_per_s  Bus bandwidth, GB/s
SELECT op, bytes, nranks, pure_us, wait_us / ranks_seen AS wait_us, busbw_gbytes_per_s
FROM collective_calls
WHERE nodes IS DISTINCT FROM 1 AND job IS NOT DISTINCT FROM $job::VARCHAR
  AND coalesce(ts > $begin::TIMESTAMP AND ts <= $end::TIMESTAMP, $whole_job)
ORDER BY op, bytes, nranks, seq
