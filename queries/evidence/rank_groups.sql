-- question: Which ranks of a job do the same work, by the groups they communicate in?
-- Groups that sum gradients (those of the collective the job spends most time in, or named so) hold
-- ranks of one pipeline stage, and so do those of tensor parallelism, within a host. A group of the
-- whole job tells nothing.
WITH members AS (
  SELECT r.job, r.comm_id, r.nranks, r.nodes, w.rank
  FROM ranks r
  JOIN job_ranks w ON w.job IS NOT DISTINCT FROM r.job AND w.host = r.host AND w.pid = r.pid
  UNION
  SELECT DISTINCT job, comm_id, nranks, nodes, global_rank FROM collectives
  WHERE global_rank IS NOT NULL AND nranks > 1
),
summing AS (
  SELECT DISTINCT job, comm_id FROM main_collective
  UNION
  SELECT DISTINCT job, comm_id FROM collectives
  WHERE regexp_matches(comm_name, '(?i)data.?parallel|\bdp\b|tensor.?(model.?)?parallel|\btp\b')
)
SELECT m.job, m.comm_id, m.rank
FROM members m
LEFT JOIN summing s ON s.job IS NOT DISTINCT FROM m.job AND s.comm_id = m.comm_id
WHERE m.comm_id IS NOT NULL AND m.rank IS NOT NULL
  AND m.nranks < (SELECT max(j.nranks) FROM members j WHERE j.job IS NOT DISTINCT FROM m.job)
  AND (s.comm_id IS NOT NULL OR m.nodes = 1)
ORDER BY m.job, m.comm_id, m.rank
