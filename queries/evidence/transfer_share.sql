-- question: Which share of its usual step does the job transfer that does so longest?
-- By its step records; where none tell, the share of the time in which a rank is in collectives between hosts, all
-- kinds of them added up. Of calls of which only every n-th is recorded, their numbers tell the others.
WITH by_steps AS (
  SELECT median(transfer_ms / step_time_ms) AS share FROM evidence.job_steps
  WHERE transfer_ms IS NOT NULL AND step_time_ms > 0 GROUP BY job
),
-- Operations of which no pure time is told may take as long.
untold AS (
  SELECT DISTINCT job FROM collectives
  WHERE nodes IS DISTINCT FROM 1 AND op NOT IN ('AllReduce', 'AllGather', 'ReduceScatter')
),
by_communicator AS (
  SELECT job, comm_id, op, nranks, epoch(max(ts)) - epoch(min(ts)) AS seconds,
    sum(pure_us) / 1e6 * (max(seq) - min(seq) + 1) / count(DISTINCT seq) AS pure_seconds
  FROM collective_calls c
  WHERE nodes IS DISTINCT FROM 1 AND ts IS NOT NULL
    AND NOT EXISTS (FROM by_steps WHERE share > 0) AND NOT EXISTS (FROM untold u WHERE u.job IS NOT DISTINCT FROM c.job)
  GROUP BY job, comm_id, op, nranks
),
by_kind AS (
  SELECT job, median(pure_seconds / seconds) AS share FROM by_communicator
  WHERE seconds > 0 GROUP BY job, op, nranks
)
SELECT max(share) AS share FROM (
  SELECT share FROM by_steps
  UNION ALL
  SELECT least(sum(share), 1) FROM by_kind GROUP BY job
) WHERE share > 0
