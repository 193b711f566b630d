-- question: How long did the transfers of the collective take that the job spends most time in?
SELECT job, seq, op, bytes, ts, pure_us, lateness_us, last_rank, ranks_seen, nranks
FROM main_collective
ORDER BY job, comm_id, seq
