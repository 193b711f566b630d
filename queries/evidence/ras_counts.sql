-- question: Which ranks have launched less than their communicator, by the last report of NCCL's RAS?
-- A row is a process that has launched less or more operations of a kind than others of a communicator. `behind`: how
-- many less than the furthest, `op`, `comm_id`, `launched` and `furthest` of the communicator where it is most;
-- `leads`: how many more than the last, in any communicator: it waits there, or calls another operation (`odd_order`: in
-- the same communicator). `unchanged_s`: for so many seconds earlier reports tell the same counts; `after_steps_s`:
-- its file was written so long after the last file with training steps. `reports`: how many there are.
-- `members`: ranks of the communicator that the report counts. The text
-- report lists only the smaller side; where that side leads, the others are not named and no row is behind.
-- `rank` is that of the job: by NCCL's log, else by the report's largest communicator; null where nothing tells it.
WITH told AS (
  SELECT e.job, e.file_id, e.line, coalesce(e.ts, f.dated) AS ts, f.modified, e.kind, e.comm_id, e.op,
    e.rank AS comm_rank, e.host, e.pid, e.last_enqueued AS launched, e.peers_enqueued, e.peers,
    -- A report begins with the table of groups; undated ones may follow another in a file.
    sum((e.kind = 'ras_group' AND coalesce(lag_kind, '') <> 'ras_group')::INTEGER)
      OVER (PARTITION BY e.job, e.file_id, f.dated, f.modified ORDER BY e.line) AS part
  FROM (
    SELECT *, lag(kind) OVER (PARTITION BY job, file_id ORDER BY line) AS lag_kind
    FROM nccl_events WHERE kind LIKE 'ras_%' AND kind <> 'ras_peer'
  ) e
  LEFT JOIN files f ON f.file_id = e.file_id
),
reports AS (
  SELECT DISTINCT job, file_id, part, ts, modified,
    dense_rank() OVER (PARTITION BY job ORDER BY coalesce(ts, modified), file_id, part) AS number
  FROM told
),
counts AS (
  SELECT r.number, t.*
  FROM told t
  JOIN reports r ON r.job IS NOT DISTINCT FROM t.job AND r.file_id IS NOT DISTINCT FROM t.file_id
    AND r.part IS NOT DISTINCT FROM t.part AND r.ts IS NOT DISTINCT FROM t.ts
    AND r.modified IS NOT DISTINCT FROM t.modified
  WHERE t.kind IN ('ras_count', 'ras_mismatch') AND t.comm_rank IS NOT NULL AND t.launched IS NOT NULL
    AND coalesce(t.op, '') NOT IN ('Send', 'Recv', 'SendRecv', 'PutSignal', 'Signal', 'WaitSignal')
),
compared AS (
  SELECT *, max(greatest(launched, peers_enqueued)) OVER call AS furthest,
    min(least(launched, peers_enqueued)) OVER call AS least, count(*) OVER call + coalesce(peers, 0) AS members
  FROM counts
  WINDOW call AS (PARTITION BY job, number, comm_id, op)
),
differing AS (SELECT * FROM compared WHERE furthest > least),
latest AS (SELECT job, max(number) AS number, count(DISTINCT number) AS reports FROM reports GROUP BY job),
last_one AS (
  SELECT d.* FROM differing d JOIN latest l ON l.job IS NOT DISTINCT FROM d.job AND l.number = d.number
),
-- Back to the first report from which on the counts are these.
unchanged AS (
  SELECT n.job, n.comm_id, n.op, n.comm_rank, epoch(n.ts) - epoch(min(e.ts)) AS unchanged_s
  FROM last_one n
  JOIN differing e ON e.job IS NOT DISTINCT FROM n.job AND e.comm_id = n.comm_id AND e.op IS NOT DISTINCT FROM n.op
    AND e.comm_rank = n.comm_rank AND e.launched = n.launched AND e.furthest = n.furthest
  GROUP BY n.job, n.comm_id, n.op, n.comm_rank, n.ts
),
placed AS (
  SELECT d.*, coalesce(w.rank, j.rank, l.rank, n.rank) AS rank,
    coalesce(w.host, j.host, l.host, a.host, host_name(d.host)) AS job_host, coalesce(w.pid, d.pid) AS job_pid
  FROM last_one d
  LEFT JOIN ranks m ON m.job IS NOT DISTINCT FROM d.job AND m.comm_id = d.comm_id AND m.rank = d.comm_rank
  LEFT JOIN job_ranks w ON w.job IS NOT DISTINCT FROM m.job AND w.host = m.host AND w.pid = m.pid
    AND w.gpu IS NOT DISTINCT FROM coalesce(m.nvml_device, m.cuda_device)
  LEFT JOIN host_addresses a ON a.address = d.host
  LEFT JOIN (
    SELECT job, host, pid, max(rank) AS rank FROM job_ranks WHERE pid IS NOT NULL GROUP BY ALL HAVING count(*) = 1
  ) j ON j.job IS NOT DISTINCT FROM d.job AND j.host = coalesce(a.host, host_name(d.host)) AND j.pid = d.pid
  LEFT JOIN lone_processes l ON l.job IS NOT DISTINCT FROM d.job AND l.pid = d.pid
  LEFT JOIN ras_ranks n ON n.job IS NOT DISTINCT FROM d.job AND n.host = d.host AND n.pid = d.pid
),
processes AS (
  SELECT job, number, rank, job_host AS host, CASE WHEN rank IS NULL OR job_pid IS NOT NULL THEN job_pid END AS pid,
    max(furthest - launched) AS behind, max(launched - least) AS leads,
    arg_max(comm_id, furthest - launched) AS comm_id, arg_max(op, furthest - launched) AS op,
    arg_max(launched, furthest - launched) AS launched, arg_max(furthest, furthest - launched) AS furthest,
    arg_max(comm_rank, furthest - launched) AS comm_rank, arg_max(members, furthest - launched) AS members,
    max(ts) AS ts, max(modified) AS modified
  FROM placed
  GROUP BY job, number, rank, job_host, job_pid
),
steps_written AS (
  SELECT s.job, max(f.modified) AS modified
  FROM (SELECT DISTINCT job, file_id FROM steps) s JOIN files f USING (file_id)
  GROUP BY s.job
)
SELECT p.job, p.rank, p.host, p.pid, p.behind, p.leads, p.comm_id, p.op, p.launched, p.furthest,
  EXISTS (
    FROM placed o WHERE o.job IS NOT DISTINCT FROM p.job AND o.rank IS NOT DISTINCT FROM p.rank AND o.job_host = p.host
      AND o.job_pid IS NOT DISTINCT FROM p.pid AND o.comm_id = p.comm_id AND o.launched > o.least
  ) AND p.behind > 0 AS odd_order,
  p.members, u.unchanged_s, epoch(p.modified) - epoch(w.modified) AS after_steps_s, l.reports, p.ts
FROM processes p
JOIN latest l ON l.job IS NOT DISTINCT FROM p.job
LEFT JOIN unchanged u ON u.job IS NOT DISTINCT FROM p.job AND u.comm_id = p.comm_id AND u.op IS NOT DISTINCT FROM p.op
  AND u.comm_rank = p.comm_rank
LEFT JOIN steps_written w ON w.job IS NOT DISTINCT FROM p.job
ORDER BY p.job, p.rank, p.host, p.pid
