-- question: From when to when do the logs state times?
-- The time of a file's last change is no statement: a copy may bear that of the copying. NULL where
-- nothing states a time.
SELECT min(ts) AS first_time, max(ts) AS last_time
FROM (
  SELECT ts, ts_source FROM steps
  UNION ALL SELECT ts, ts_source FROM collectives
  UNION ALL SELECT ts, ts_source FROM nccl_events
  UNION ALL SELECT ts, ts_source FROM events
  UNION ALL SELECT ts, ts_source FROM port_status
  UNION ALL SELECT ts, ts_source FROM port_samples
  UNION ALL SELECT ts, ts_source FROM priority_samples
  -- By the clocks of the job.
  UNION ALL SELECT ts, ts_source FROM port_rates
  UNION ALL SELECT ts_before, ts_source FROM port_rates
)
WHERE ts IS NOT NULL AND ts_source NOT IN ('mtime', 'none')
