-- question: What does each file tell of the processes and ranks that wrote it?
-- A row is a process, communicator or rank as one table of one file shows it. A communicator hash is
-- equal on all its ranks and new in every launch; names of process groups are neither.
WITH processes AS (
  SELECT file_id, job, host, pid, comm, comm_id, nranks, rank, version, line, ts, ts_source FROM nccl_ranks
  UNION ALL BY NAME
  SELECT file_id, job, host, pid, line, ts, ts_source FROM nccl_nics
  UNION ALL BY NAME
  SELECT file_id, job, host, pid, line, ts, ts_source FROM nccl_env
  UNION ALL BY NAME
  SELECT file_id, job, host, pid, line, ts, ts_source FROM nccl_channels
  UNION ALL BY NAME
  SELECT file_id, job, host, pid, comm_id, line, ts, ts_source FROM nccl_events
),
told AS (
  SELECT 'process' AS told_by, file_id, job, host, pid,
    max(comm_id) FILTER (regexp_full_match(comm_id, '0x[0-9a-f]{8,16}')) AS comm_hash,
    max(nranks) AS nranks, rank,
    -- NCCL prints the CUDA version behind a plus sign, traces do not.
    max(split_part(version, '+', 1)) AS version,
    comm, min(line) AS first_line, max(line) AS last_line,
    NULL::BIGINT AS first_step, NULL::BIGINT AS last_step, NULL::BIGINT AS calls, NULL::VARCHAR AS printed,
    min(ts) FILTER (ts_source NOT IN ('mtime', 'none')) AS ts_first,
    max(ts) FILTER (ts_source NOT IN ('mtime', 'none')) AS ts_last
  FROM processes
  GROUP BY file_id, job, host, pid, comm, comm_id, rank
  UNION ALL
  SELECT 'collective', file_id, job, host, pid,
    CASE WHEN regexp_full_match(comm_id, '0x[0-9a-f]{8,16}') THEN comm_id END,
    max(nranks), max(global_rank), NULL, NULL, NULL, NULL, NULL, NULL, count(*), NULL,
    min(ts) FILTER (ts_source NOT IN ('mtime', 'none')),
    max(ts) FILTER (ts_source NOT IN ('mtime', 'none'))
  FROM collectives
  GROUP BY file_id, job, host, pid, comm_id
  UNION ALL
  SELECT 'step', file_id, job, host, NULL, NULL, NULL, rank, NULL, NULL, NULL, NULL, min(step), max(step), NULL,
    -- The losses of all steps: processes of one run print the same.
    CASE WHEN count(DISTINCT loss) >= 10 THEN concat(count(loss), ':', bit_xor(hash(step, loss))) END,
    min(ts) FILTER (ts_source NOT IN ('mtime', 'none')),
    max(ts) FILTER (ts_source NOT IN ('mtime', 'none'))
  FROM (
    SELECT file_id, job, host, rank, step, loss, ts, ts_source FROM steps
    UNION ALL BY NAME
    SELECT file_id, job, rank, step, ts, ts_source FROM phases
  )
  GROUP BY file_id, job, host, rank
  UNION ALL
  SELECT 'benchmark', file_id, job, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    min(ts) FILTER (ts_source NOT IN ('mtime', 'none')),
    max(ts) FILTER (ts_source NOT IN ('mtime', 'none'))
  FROM benchmarks
  GROUP BY file_id, job
)
SELECT t.told_by, t.file_id, t.job, f.path,
  host_name(t.host) AS host, t.pid, t.comm_hash, t.nranks, t.rank, t.version, t.first_line, t.last_line, t.first_step,
  t.last_step, t.ts_first, t.ts_last, f.modified, t.comm, t.calls, t.printed
FROM told t
LEFT JOIN (SELECT file_id, any_value(path) AS path, max(modified) AS modified
  FROM files GROUP BY file_id) f
  ON f.file_id = t.file_id
ORDER BY f.path, t.file_id, t.job, t.first_line, t.told_by, t.host, t.pid, t.rank
