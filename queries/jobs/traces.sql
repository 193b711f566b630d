-- question: What does each file tell of the processes and ranks that wrote it?
-- A row is a process, communicator or rank as one table of one file shows it. A communicator hash is
-- equal on all its ranks and new in every launch; names of process groups are neither.
-- A report of RAS tells communicators, long after they were made. Where it calls hosts by addresses, as others do not, its
-- processes are those of no host.
WITH reports AS (SELECT DISTINCT file_id FROM nccl_events WHERE kind LIKE 'ras%'),
processes AS (
  SELECT file_id, job, CASE WHEN NOT by_address THEN host END AS host, CASE WHEN NOT by_address THEN pid END AS pid,
    comm, comm_id, nranks, CASE WHEN NOT by_address THEN rank END AS rank,
    CASE WHEN NOT by_address THEN coalesce(bus_id, nvml_device::VARCHAR) END AS gpu, version,
    launch_rank, line,
    CASE WHEN NOT by_report THEN ts END AS ts, ts_source
  FROM (
    SELECT n.*, n.comm IS NULL AND r.file_id IS NOT NULL AS by_report,
      by_report AND is_address(n.host) AS by_address
    FROM nccl_ranks n LEFT JOIN reports r ON r.file_id = n.file_id
  )
  UNION ALL BY NAME
  SELECT file_id, job, host, pid, line, ts, ts_source FROM nccl_nics
  UNION ALL BY NAME
  SELECT file_id, job, host, pid, line, ts, ts_source FROM nccl_env
  UNION ALL BY NAME
  SELECT file_id, job, host, pid, line, ts, ts_source FROM nccl_channels
  UNION ALL BY NAME
  SELECT file_id, job, CASE WHEN NOT by_address THEN host END AS host,
    CASE WHEN NOT by_address THEN pid END AS pid, comm_id, line, CASE WHEN NOT by_report THEN ts END AS ts, ts_source
  FROM (
    SELECT *, coalesce(kind LIKE 'ras%', false) AS by_report, by_report AND is_address(host) AS by_address
    FROM nccl_events
  )
),
-- A step series that a rank or job begins again before its end is told by attempt, in the order of lines; the last
-- step again is a restart where half a minute lies between, else it is printed twice. What goes back more often
-- than jobs restart is not in that order.
stepped AS (
  SELECT file_id, job, host, rank, CASE WHEN rank IS NULL THEN host END AS whose, step, total_steps, loss, line, ts,
    ts_source
  FROM steps
  UNION ALL BY NAME
  SELECT file_id, job, rank, step, line, ts, ts_source FROM phases
),
replayed AS (
  SELECT file_id, job, rank, CASE WHEN rank IS NULL THEN host END AS whose FROM steps
  WHERE line IS NOT NULL
  -- Not more rows than steps: a trainer may print one of ten.
  GROUP BY ALL HAVING count(*) > count(DISTINCT step)
  UNION
  SELECT file_id, job, rank, NULL FROM phases
  WHERE line IS NOT NULL
  GROUP BY file_id, job, rank, phase HAVING count(*) > count(DISTINCT step)
),
begun AS (
  SELECT s.*, coalesce(s.step < lag(s.step) OVER w
    OR (s.step = lag(s.step) OVER w AND s.ts - lag(s.ts) OVER w > INTERVAL 30 SECOND), false) AS again
  FROM stepped s SEMI JOIN replayed r ON r.file_id IS NOT DISTINCT FROM s.file_id
    AND r.job IS NOT DISTINCT FROM s.job AND r.rank IS NOT DISTINCT FROM s.rank
    AND r.whose IS NOT DISTINCT FROM s.whose
  WINDOW w AS (PARTITION BY s.file_id, s.job, s.rank, s.whose ORDER BY s.line)
),
attempts AS (
  SELECT *, CASE WHEN count(*) FILTER (again) OVER p <= 20
    THEN count(*) FILTER (again) OVER (p ORDER BY line ROWS UNBOUNDED PRECEDING) ELSE 0 END AS attempt
  FROM begun
  WINDOW p AS (PARTITION BY file_id, job, rank, whose)
  UNION ALL BY NAME
  SELECT s.*, 0 AS attempt
  FROM stepped s ANTI JOIN replayed r ON r.file_id IS NOT DISTINCT FROM s.file_id
    AND r.job IS NOT DISTINCT FROM s.job AND r.rank IS NOT DISTINCT FROM s.rank
    AND r.whose IS NOT DISTINCT FROM s.whose
),
told AS (
  SELECT 'process' AS told_by, file_id, job, host, pid,
    max(comm_id) FILTER (regexp_full_match(comm_id, '0x[0-9a-f]{8,16}')) AS comm_hash,
    max(nranks) AS nranks, rank,
    -- NCCL prints the CUDA version behind a plus sign, traces do not.
    max(split_part(version, '+', 1)) AS version,
    comm, min(line) AS first_line, max(line) AS last_line,
    NULL::BIGINT AS first_step, NULL::BIGINT AS last_step, NULL::BIGINT AS calls, NULL::VARCHAR AS printed,
    0 AS attempt, max(gpu) AS gpu, NULL::BIGINT AS planned_steps, max(launch_rank) AS launch_rank,
    min(ts) FILTER (ts_source NOT IN ('mtime', 'none')) AS ts_first,
    max(ts) FILTER (ts_source NOT IN ('mtime', 'none')) AS ts_last
  FROM processes
  GROUP BY file_id, job, host, pid, comm, comm_id, rank
  UNION ALL
  SELECT 'collective', file_id, job, host, pid,
    CASE WHEN regexp_full_match(comm_id, '0x[0-9a-f]{8,16}') THEN comm_id END,
    max(nranks), max(global_rank), NULL, NULL, NULL, NULL, NULL, NULL, count(*), NULL, 0, NULL,
    NULL, NULL,
    min(ts) FILTER (ts_source NOT IN ('mtime', 'none')),
    max(ts) FILTER (ts_source NOT IN ('mtime', 'none'))
  FROM collectives
  GROUP BY file_id, job, host, pid, comm_id
  UNION ALL
  SELECT 'stack', file_id, job, host, pid, NULL, NULL, rank, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL,
    NULL, NULL,
    min(ts) FILTER (ts_source NOT IN ('mtime', 'none')),
    max(ts) FILTER (ts_source NOT IN ('mtime', 'none'))
  FROM stack_frames
  GROUP BY file_id, job, host, pid, rank
  UNION ALL
  SELECT 'step', file_id, job, host, NULL, NULL, NULL, rank, NULL, NULL, min(line), max(line), min(step), max(step),
    NULL,
    -- The losses of all steps: processes of one run print the same.
    CASE WHEN count(DISTINCT loss) >= 10 THEN concat(count(loss), ':', bit_xor(hash(step, loss))) END,
    attempt, NULL, max(total_steps), NULL,
    min(ts) FILTER (ts_source NOT IN ('mtime', 'none')),
    max(ts) FILTER (ts_source NOT IN ('mtime', 'none'))
  FROM attempts
  GROUP BY file_id, job, host, rank, attempt
  UNION ALL
  SELECT 'benchmark', file_id, job, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL,
    NULL, NULL,
    min(ts) FILTER (ts_source NOT IN ('mtime', 'none')),
    max(ts) FILTER (ts_source NOT IN ('mtime', 'none'))
  FROM benchmarks
  GROUP BY file_id, job
)
SELECT t.told_by, t.file_id, t.job, f.path,
  host_name(t.host) AS host, t.pid, t.comm_hash, t.nranks, t.rank, t.version, t.first_line, t.last_line, t.first_step,
  t.last_step, t.ts_first, t.ts_last, f.modified, t.comm, t.calls, t.printed, t.attempt, t.gpu,
  t.planned_steps, t.launch_rank
FROM told t
LEFT JOIN (SELECT file_id, any_value(path) AS path, max(modified) AS modified
  FROM files GROUP BY file_id) f
  ON f.file_id = t.file_id
ORDER BY f.path, t.file_id, t.job, t.first_line, t.told_by, t.host, t.pid, t.rank, t.attempt
