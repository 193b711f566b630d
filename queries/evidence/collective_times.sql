-- question: How long did the transfers of the collective take that the job spends most time in?
WITH kinds AS (
  SELECT job, comm_id, op, bytes, sum(pure_us) AS total_us
  FROM collective_calls WHERE nodes IS DISTINCT FROM 1
  GROUP BY job, comm_id, op, bytes
  QUALIFY row_number() OVER (PARTITION BY job ORDER BY sum(pure_us) DESC, comm_id, op, bytes) = 1
)
SELECT c.job, c.seq, c.op, c.bytes, c.ts, c.pure_us, c.lateness_us, c.last_rank, c.ranks_seen, c.nranks
FROM collective_calls c
JOIN kinds k ON c.job IS NOT DISTINCT FROM k.job AND c.comm_id = k.comm_id AND c.op = k.op
  AND c.bytes = k.bytes
ORDER BY c.job, c.seq
