-- question: How long did collectives of unchanged messages take from `$begin` to `$end`, and in the usual pace?
-- Of calls that nearly all ranks recorded, that of the rank that came last: what the others wait is not in it. Both
-- counts of calls have those that a recorder left out, by their numbers. Communicators that work alike have one row.
WITH calls AS (
  SELECT job, comm_id, op, seq, any_value(bytes) AS bytes, max(nranks) AS nranks,
    min(duration_us) / 1000 AS pure_ms, quantile_disc(ts, 0.5) AS ts
  FROM collectives
  WHERE duration_us > 0 AND timing_source IS DISTINCT FROM 'collective_cpu'
    AND op NOT IN ('Send', 'Recv') AND nodes IS DISTINCT FROM 1
  GROUP BY job, comm_id, op, seq
  HAVING count(DISTINCT bytes) = 1 AND count(*) >= $covered * max(nranks)
),
placed AS (
  SELECT *, ts BETWEEN $begin::TIMESTAMP AND $end::TIMESTAMP AS during,
    (max(seq) OVER own - min(seq) OVER own + 1) / count(*) OVER own AS one_in
  FROM calls
  WHERE ts BETWEEN $begin::TIMESTAMP AND $end::TIMESTAMP OR ts BETWEEN $before_begin::TIMESTAMP AND $before_end::TIMESTAMP
  WINDOW own AS (PARTITION BY job, comm_id, op, ts BETWEEN $begin::TIMESTAMP AND $end::TIMESTAMP)
),
of_communicators AS (
  SELECT job, comm_id, op, bytes, nranks,
    median(pure_ms) FILTER (NOT during) AS before_ms, median(pure_ms) FILTER (during) AS after_ms,
    sum(one_in) FILTER (NOT during) AS calls_before, sum(one_in) FILTER (during) AS calls
  FROM placed
  GROUP BY job, comm_id, op, bytes, nranks
  HAVING count(*) FILTER (NOT during) >= $fewest AND count(*) FILTER (during) >= $fewest
)
SELECT job, op, bytes, nranks, median(before_ms) AS before_ms, median(after_ms) AS after_ms,
  median(calls_before) AS calls_before, median(calls) AS calls
FROM of_communicators
GROUP BY job, op, bytes, nranks
ORDER BY job, op, bytes, nranks
