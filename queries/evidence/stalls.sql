-- question: What does each source tell of each rank of a job that may stand still?
-- The watchdogs and flight recorders (`waiting_ranks`), NCCL's RAS (`ras_`), Python stacks (`stack_`) and the
-- recorded call (`call_`), joined by rank. Rank null: a process whose rank nothing tells.
WITH everyone AS (
  SELECT job, rank FROM evidence.waiting_ranks
  UNION SELECT job, rank FROM evidence.ras_counts WHERE rank IS NOT NULL
  UNION SELECT job, rank FROM evidence.rank_stacks WHERE rank IS NOT NULL
),
ras AS (
  SELECT * FROM evidence.ras_counts
  QUALIFY row_number() OVER (PARTITION BY job, rank, CASE WHEN rank IS NULL THEN pid END ORDER BY behind DESC, pid) = 1
),
stacks AS (
  SELECT * FROM evidence.rank_stacks
  QUALIFY row_number()
    OVER (PARTITION BY job, rank, CASE WHEN rank IS NULL THEN pid END ORDER BY ts DESC NULLS LAST, pid) = 1
),
-- Processes whose rank nothing tells, by their id: RAS and a stack may call their host by different names.
nameless AS (
  SELECT job, pid FROM evidence.ras_counts WHERE rank IS NULL AND pid IS NOT NULL GROUP BY ALL HAVING count(*) = 1
  UNION
  SELECT job, pid FROM evidence.rank_stacks WHERE rank IS NULL AND pid IS NOT NULL GROUP BY ALL HAVING count(*) = 1
),
keyed AS (
  SELECT job, rank, NULL::BIGINT AS pid FROM everyone
  UNION ALL SELECT job, NULL, pid FROM nameless
)
SELECT k.job, k.rank, coalesce(w.host, CASE WHEN k.rank IS NULL THEN s.host END, r.host, s.host) AS host, coalesce(w.pid, k.pid, r.pid, s.pid) AS pid,
  coalesce(w.timed_out, false) AS timed_out, w.waited_ms, w.op, w.seq, w.process_group, w.behind, w.open, w.not_begun,
  coalesce(w.in_kernel, false) AS in_kernel, w.unfinished, coalesce(w.dead, false) AS dead,
  coalesce(w.taken_down, false) AS taken_down, w.called_at, w.gave_up_at, w.log,
  r.behind AS ras_behind, r.leads AS ras_leads, r.comm_id AS ras_comm, r.op AS ras_op, r.launched AS ras_launched,
  r.furthest AS ras_furthest, coalesce(r.odd_order, false) AS ras_odd, r.unchanged_s, r.after_steps_s,
  r.reports AS ras_reports, r.members AS ras_members, r.ts AS ras_ts,
  s.doing, s.waits, s.function, s.place, s.code_line, s.own_function, s.own_place, s.own_line, s.ts AS stack_ts,
  c.op AS call_op, c.seq AS call_seq, c.process_group AS call_group, c.bytes AS call_bytes, c.open AS call_open,
  c.odd_op, c.usual_op, c.usual_bytes, c.function AS call_function, c.place AS call_place, c.code_line AS call_line
FROM keyed k
LEFT JOIN evidence.waiting_ranks w ON w.job IS NOT DISTINCT FROM k.job AND w.rank = k.rank
LEFT JOIN ras r ON r.job IS NOT DISTINCT FROM k.job AND r.rank IS NOT DISTINCT FROM k.rank
  AND (k.rank IS NOT NULL OR r.pid = k.pid)
LEFT JOIN stacks s ON s.job IS NOT DISTINCT FROM k.job AND s.rank IS NOT DISTINCT FROM k.rank
  AND (k.rank IS NOT NULL OR s.pid = k.pid)
LEFT JOIN evidence.recorded_calls c ON c.job IS NOT DISTINCT FROM k.job AND c.rank = k.rank
ORDER BY k.job, k.rank NULLS LAST, host, pid
