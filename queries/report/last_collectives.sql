-- question: Which collective did each rank of the job $job launch last, and which ended last?
-- Of several process groups the one in which most ranks wait. Ranks in a row that are alike are one
-- row. As the flight recorders and the watchdogs tell.
-- columns:
--   first_rank     First rank of the row
--   last_rank      Last rank of the row
--   ranks          Their number
--   host           Host of the first
--   process_group  Group of the collectives, empty if it has no name
--   launched       Number of the collective they launched last; null where nothing tells
--   completed      Number of the one that ended last
--   said           What the watchdog said of them
WITH told AS (
  SELECT job, coalesce(launch_rank, rank) AS rank, process_group, last_enqueued AS launched,
    last_completed AS completed, kind = 'watchdog_timeout' AS timed_out, seq
  FROM nccl_events
  WHERE coalesce(launch_rank, rank) IS NOT NULL AND coalesce(last_enqueued, seq) IS NOT NULL
    AND kind NOT LIKE 'ras%'
  UNION ALL
  SELECT job, global_rank, coalesce(comm_name, comm_id), seq,
    CASE WHEN state = 'completed' THEN seq END, false, NULL
  FROM collectives WHERE state IS NOT NULL AND global_rank IS NOT NULL
),
of_job AS (
  SELECT * FROM told WHERE $job::VARCHAR IS NULL OR job = $job::VARCHAR
),
by_rank AS (
  SELECT rank, process_group, max(coalesce(launched, seq)) AS launched, max(completed) AS completed,
    bool_or(timed_out) AS timed_out
  FROM of_job GROUP BY rank, process_group
),
chosen AS (
  SELECT process_group FROM by_rank
  GROUP BY process_group
  ORDER BY count(*) FILTER (launched > completed) DESC, count(*) DESC, process_group LIMIT 1
),
everyone AS (
  SELECT r.rank, any_value(j.host) AS host, any_value(b.process_group) AS process_group,
    max(b.launched) AS launched, max(b.completed) AS completed,
    coalesce(bool_or(o.timed_out), false) AS timed_out
  FROM (SELECT rank FROM job_ranks WHERE rank IS NOT NULL UNION SELECT rank FROM by_rank) r
  LEFT JOIN job_ranks j USING (rank)
  LEFT JOIN by_rank b ON b.rank = r.rank
    AND b.process_group IS NOT DISTINCT FROM (SELECT process_group FROM chosen)
  LEFT JOIN by_rank o ON o.rank = r.rank
  GROUP BY r.rank
),
changes AS (
  SELECT *, (launched, completed, timed_out) IS DISTINCT FROM
    lag((launched, completed, timed_out)) OVER (ORDER BY rank) AS differs
  FROM everyone
),
runs AS (SELECT *, sum(differs::INTEGER) OVER (ORDER BY rank) AS run FROM changes)
SELECT min(rank) AS first_rank, max(rank) AS last_rank, count(*) AS ranks,
  arg_min(host, rank) AS host, any_value(process_group) AS process_group,
  any_value(launched) AS launched, any_value(completed) AS completed,
  CASE WHEN bool_or(timed_out) THEN 'gave up' ELSE 'said nothing' END AS said
FROM runs
GROUP BY run
ORDER BY first_rank
