-- question: Which ranks wait in a collective that never ended, by watchdogs and flight recorders, and which never called it?
-- `timed_out`: PyTorch's watchdog gave up on a collective of the rank, after `waited_ms`. `behind`:
-- collectives the furthest rank of a group has launched and this one has not, by the flight recorders
-- (null where nothing tells; ranks of groups that send and receive do not launch alike). `open`: the
-- rank has launched one that did not end. `unfinished`: collectives that it has launched and not ended beyond the
-- median of its peers, summed over its groups of three and more. `dead`: NCCL's RAS calls its process dead or misses it.
-- `not_begun`: collectives that peers' GPUs have begun and this rank has launched and its GPU not begun; `in_kernel`:
-- its GPU has begun one that did not end. `gave_up_at`: when it said so. `log`: the file in which NCCL tells of the rank, with times.
-- `taken_down`: the watchdog says that it ends the rank's process.
-- Lines of the watchdog name the rank in the job before the message, where a launcher's prefix does.
WITH two_sided AS (
  SELECT DISTINCT job, split_part(comm_id, '[', 1) || coalesce(' ' || comm_name, '') AS process_group
  FROM collectives WHERE op IN ('Send', 'Recv')
),
groups AS (
  SELECT job, process_group, coalesce(launch_rank, rank) AS rank,
    max(last_enqueued) AS last_enqueued, max(last_completed) AS last_completed,
    -- What has ended has begun, also where the watchdog did not see it begin.
    max(CASE WHEN last_started IS NOT NULL THEN greatest(last_started, last_completed) END) AS last_started
  FROM nccl_events
  WHERE last_enqueued IS NOT NULL AND coalesce(launch_rank, rank) IS NOT NULL
    AND kind NOT LIKE 'ras%'
  GROUP BY ALL
),
progress AS (
  SELECT job, rank, max(CASE WHEN one_sided THEN furthest - last_enqueued END) AS behind,
    bool_or(last_enqueued > last_completed) AS open, bool_or(last_started > last_completed) AS in_kernel,
    max(CASE WHEN one_sided THEN least(begun, last_enqueued) - last_started END) AS not_begun
  FROM (
    SELECT g.*, t.process_group IS NULL AS one_sided,
      max(last_enqueued) OVER (PARTITION BY g.job, g.process_group) AS furthest,
      max(last_started) OVER (PARTITION BY g.job, g.process_group) AS begun
    FROM groups g
    LEFT JOIN two_sided t ON t.job IS NOT DISTINCT FROM g.job AND t.process_group = g.process_group
  )
  GROUP BY job, rank
),
open_by_group AS (
  SELECT g.job, g.process_group, g.rank, g.last_enqueued - coalesce(g.last_completed, 0) AS open, c.comm_id
  FROM groups g
  JOIN (
    SELECT DISTINCT job, global_rank AS rank, comm_id,
      split_part(comm_id, '[', 1) || coalesce(' ' || comm_name, '') AS process_group
    FROM collectives
  ) c ON c.job IS NOT DISTINCT FROM g.job AND c.rank = g.rank AND c.process_group = g.process_group
  ANTI JOIN two_sided t ON t.job IS NOT DISTINCT FROM g.job AND t.process_group = g.process_group
),
stuck AS (
  SELECT job, rank, sum(greatest(open - usual, 0)) AS unfinished
  FROM (
    SELECT o.job, o.rank, o.open, median(p.open) AS usual
    FROM open_by_group o
    JOIN open_by_group p
      ON p.job IS NOT DISTINCT FROM o.job AND p.process_group = o.process_group AND p.comm_id = o.comm_id AND p.rank <> o.rank
    GROUP BY ALL
    HAVING count(*) >= 2
  )
  GROUP BY job, rank
),
timeouts AS (
  SELECT job, coalesce(launch_rank, rank) AS rank, max(duration_ms) AS waited_ms, max(op) AS op,
    max(seq) AS seq, max(process_group) AS process_group, max(ts) AS gave_up_at
  FROM nccl_events
  WHERE kind = 'watchdog_timeout' AND coalesce(launch_rank, rank) IS NOT NULL
  GROUP BY ALL
),
taken_down AS (
  SELECT DISTINCT job, coalesce(launch_rank, rank) AS rank
  FROM nccl_events
  WHERE kind = 'watchdog' AND contains(text, 'taking the entire process down')
),
called AS (
  SELECT job, global_rank AS rank, max(ts) AS called_at
  FROM collectives
  WHERE state <> 'completed' AND global_rank IS NOT NULL
  GROUP BY ALL
),
own_logs AS (
  SELECT r.job, r.rank, max(f.path) AS log
  FROM job_ranks r
  JOIN nccl_ranks n ON n.job IS NOT DISTINCT FROM r.job AND host_name(n.host) = r.host AND n.pid = r.pid
  JOIN files f USING (file_id)
  WHERE n.ts IS NOT NULL
  GROUP BY ALL
),
missing AS (
  SELECT e.job, coalesce(r.rank, w.rank, CASE WHEN e.comm_id IS NULL THEN e.rank END) AS rank
  FROM nccl_events e
  LEFT JOIN ranks m ON m.job IS NOT DISTINCT FROM e.job AND m.comm_id = e.comm_id AND m.rank = e.rank
  LEFT JOIN job_ranks w
    ON w.job IS NOT DISTINCT FROM m.job AND w.host = m.host AND w.pid = m.pid
  LEFT JOIN job_ranks r
    ON r.job IS NOT DISTINCT FROM e.job AND r.host = host_name(e.host) AND r.pid = e.pid
  WHERE e.kind = 'ras_dead' OR (e.kind = 'ras_incomplete' AND e.rank IS NOT NULL)
),
everyone AS (
  SELECT job, rank FROM progress UNION SELECT job, rank FROM timeouts
  UNION SELECT job, rank FROM missing WHERE rank IS NOT NULL UNION SELECT job, rank FROM job_ranks WHERE rank IS NOT NULL
)
SELECT e.job, e.rank, j.host, j.pid, t.rank IS NOT NULL AS timed_out, t.waited_ms, t.op, t.seq, t.process_group,
  p.behind, p.open, p.not_begun, coalesce(p.in_kernel, false) AS in_kernel, u.unfinished, m.rank IS NOT NULL AS dead,
  d.rank IS NOT NULL AS taken_down, c.called_at, t.gave_up_at, l.log
FROM everyone e
LEFT JOIN job_ranks j ON j.job IS NOT DISTINCT FROM e.job AND j.rank = e.rank
LEFT JOIN progress p ON p.job IS NOT DISTINCT FROM e.job AND p.rank = e.rank
LEFT JOIN stuck u ON u.job IS NOT DISTINCT FROM e.job AND u.rank = e.rank
LEFT JOIN timeouts t ON t.job IS NOT DISTINCT FROM e.job AND t.rank = e.rank
LEFT JOIN (SELECT DISTINCT job, rank FROM missing) m
  ON m.job IS NOT DISTINCT FROM e.job AND m.rank = e.rank
LEFT JOIN taken_down d ON d.job IS NOT DISTINCT FROM e.job AND d.rank = e.rank
LEFT JOIN own_logs l ON l.job IS NOT DISTINCT FROM e.job AND l.rank = e.rank
LEFT JOIN called c ON c.job IS NOT DISTINCT FROM e.job AND c.rank = e.rank
WHERE e.rank IS NOT NULL
ORDER BY e.job, e.rank
