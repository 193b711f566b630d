-- question: Which ranks ended by an error, and with what?
-- A row is a rank, or a job whose log names none. Of a job's errors those count that are nearest to a cause, by
-- `class`: 1 an exception of the program or its GPU, and memory that ran out; 2 a signal that nobody sends to stop a
-- job (signal.h: 4, 7, 8, 9, 11); 3 an exit with an error that no log explains; 4 an exception of communication,
-- which ranks get whose peers ended. What a launcher raises, or a stop by hand, the end by SIGTERM and, after a watchdog's
-- time-out, by SIGABRT are consequences; so is the exit code 1 of
-- a benchmark that counts wrong results. An error that steps follow in its file was survived.
WITH last_steps AS (SELECT file_id, max(line) AS line FROM steps GROUP BY file_id),
timed_out AS (SELECT DISTINCT job FROM nccl_events WHERE kind IN ('watchdog_timeout', 'watchdog_stuck')),
signals (signal, meaning) AS (
  VALUES
    (4, 'signal 4 (SIGILL)'), (6, 'signal 6 (SIGABRT)'), (7, 'signal 7 (SIGBUS)'), (8, 'signal 8 (SIGFPE)'),
    (9, 'signal 9 (SIGKILL)'), (11, 'signal 11 (SIGSEGV)')
),
ended AS (
  -- A traceback has no times; what a launcher then says of the rank, or of another of the job, has.
  SELECT e.job, e.line, e.rank,
    coalesce(e.ts, min(e.ts) OVER (PARTITION BY e.job, e.rank), min(e.ts) OVER (PARTITION BY e.job)) AS ts,
    min(host_name(e.host)) OVER (PARTITION BY e.job, e.rank) AS told_on, e.kind, e.part,
    coalesce(e.part || coalesce(': ' || e.text, ''), e.text, '') AS said,
    -- A shell adds 128 to the number of a signal, Python makes it negative.
    CASE WHEN e.code > 128 THEN e.code - 128 WHEN e.code < 0 THEN -e.code END AS signal, e.code,
    EXISTS (FROM timed_out t WHERE t.job IS NOT DISTINCT FROM e.job) AS after_watchdog,
    EXISTS (FROM benchmarks b WHERE b.job IS NOT DISTINCT FROM e.job AND greatest(b.wrong, b.in_place_wrong) > 0) AS is_wrong
  FROM events e
  LEFT JOIN last_steps l USING (file_id)
  WHERE (e.kind IN ('exception', 'root_cause', 'killed') OR (e.kind = 'out_of_memory' AND e.rank IS NOT NULL))
    AND coalesce(l.line < e.line, true)
),
classed AS (
  SELECT *,
    CASE
      WHEN kind = 'out_of_memory' THEN 1
      WHEN kind = 'exception' AND regexp_matches(part, '(ChildFailedError|SignalException|SystemExit|KeyboardInterrupt)$') THEN NULL
      WHEN kind = 'exception' AND regexp_matches(said, '(?i)DistBackend|DistNetwork|DistStore|Rendezvous|NCCL|gloo|Connection|BrokenPipe|EOFError|socket|peer')
        THEN CASE WHEN NOT after_watchdog THEN 4 END
      WHEN kind = 'exception' THEN 1
      WHEN signal IN (4, 7, 8, 9, 11) AND kind = 'root_cause' THEN 2
      WHEN coalesce(e.code, 0) = 0 OR after_watchdog OR is_wrong OR signal IN (1, 2, 9, 15) THEN NULL
      ELSE 3
    END AS class,
    CASE
      WHEN kind = 'out_of_memory' THEN 'no memory left on its host'
      WHEN kind = 'exception' THEN CASE WHEN length(said) > 120 THEN said[:117] || '...' ELSE said END
      ELSE coalesce(s.meaning, 'exit code ' || e.code)
    END AS what
  FROM ended e
  LEFT JOIN signals s USING (signal)
),
nearest AS (
  FROM classed c
  WHERE class IS NOT NULL AND NOT (class = 3 AND EXISTS (
    FROM classed x WHERE x.kind = 'exception' AND x.job IS NOT DISTINCT FROM c.job AND x.rank IS NOT DISTINCT FROM c.rank))
  QUALIFY class = min(class) OVER (PARTITION BY job)
),
by_rank AS (
  SELECT job, rank, class, arg_min(what, line) AS what, any_value(told_on) AS host, min(ts) AS ts, count(*) OVER (PARTITION BY job) AS failed
  FROM nearest
  WHERE rank IS NOT NULL OR NOT EXISTS (FROM nearest o WHERE o.job IS NOT DISTINCT FROM nearest.job AND o.rank IS NOT NULL)
  GROUP BY job, rank, class
),
counted AS (
  SELECT r.*, CASE WHEN z.ranks_expected >= r.failed THEN z.ranks_expected END AS ranks,
    r.rank IS NULL OR coalesce(r.failed > 1 AND r.failed >= $job_share * ranks, false) AS is_job
  FROM by_rank r
  -- The log of a launcher names no job: it is that of the only one.
  LEFT JOIN (SELECT *, count(*) OVER () = 1 AS is_only FROM evidence.job_sizes) z
    ON z.job IS NOT DISTINCT FROM r.job OR (r.job IS NULL AND z.is_only)
)
SELECT c.job, CASE WHEN c.is_job THEN 'job' ELSE 'rank' END AS type, CASE WHEN NOT c.is_job THEN c.rank END AS rank,
  CASE WHEN NOT c.is_job THEN coalesce(j.host, c.host) END AS host, c.class, c.what, c.failed, c.ranks,
  CASE WHEN k.host IS NOT NULL THEN 'the kernel of its host killed processes for want of memory' END AS killed_by,
  c.ts AS ts_before, c.ts
FROM counted c
LEFT JOIN job_ranks j ON j.job IS NOT DISTINCT FROM c.job AND j.rank = c.rank
LEFT JOIN (SELECT DISTINCT host_name(host) AS host FROM events WHERE kind = 'out_of_memory' AND rank IS NULL) k
  ON k.host = coalesce(j.host, c.host) AND c.class = 2
ORDER BY c.job, c.rank
