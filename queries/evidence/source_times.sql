-- question: From when to when do the sources of a store tell of the job, each by its own clock?
-- `busy`: from the first to the last interval in which ports carry traffic as they usually do, null
-- unless quiet intervals lie before and after it. Times of the last change of a file are left out.
WITH traffic AS (
  SELECT time_bucket(to_seconds(greatest(1, (SELECT median(epoch(ts) - epoch(ts_before)) FROM port_rates))), ts) AS bucket,
    min(ts_before) AS ts_before, max(ts) AS ts, sum(tx_bytes) / sum(seconds) AS rate
  FROM port_rates
  WHERE tx_bytes IS NOT NULL AND seconds > 0 AND NOT coalesce(gap, false)
    AND coalesce(ts_source, '') NOT IN ('mtime', 'none')
  GROUP BY bucket
),
busy AS (
  SELECT min(ts_before) FILTER (rate > usual / 4) AS first_busy, max(ts) FILTER (rate > usual / 4) AS last_busy
  FROM (SELECT *, quantile_cont(rate, 0.75) OVER () AS usual FROM traffic)
)
SELECT 'steps' AS source, min(ts) AS first_time, max(ts) AS last_time, NULL::TIMESTAMP AS first_busy,
  NULL::TIMESTAMP AS last_busy, NULL::DOUBLE AS seconds
FROM steps WHERE coalesce(ts_source, '') NOT IN ('mtime', 'none') HAVING min(ts) IS NOT NULL
UNION ALL
SELECT 'counters', min(t.ts_before), max(t.ts),
  CASE WHEN min(t.ts_before) < any_value(b.first_busy) AND max(t.ts) > any_value(b.last_busy) THEN any_value(b.first_busy) END,
  CASE WHEN min(t.ts_before) < any_value(b.first_busy) AND max(t.ts) > any_value(b.last_busy) THEN any_value(b.last_busy) END,
  median(epoch(t.ts) - epoch(t.ts_before))
FROM traffic t CROSS JOIN busy b HAVING count(*) > 0
UNION ALL
SELECT 'NCCL logs', min(ts), max(ts), NULL, NULL, NULL
FROM (SELECT ts, ts_source FROM nccl_events UNION ALL SELECT ts, ts_source FROM nccl_ranks)
WHERE coalesce(ts_source, '') NOT IN ('mtime', 'none') HAVING min(ts) IS NOT NULL
UNION ALL
SELECT 'collectives', min(ts), max(ts), NULL, NULL, NULL
FROM collectives WHERE coalesce(ts_source, '') NOT IN ('mtime', 'none') HAVING min(ts) IS NOT NULL
UNION ALL
SELECT 'GPU metrics', min(ts), max(ts), NULL, NULL, NULL FROM gpu_states HAVING min(ts) IS NOT NULL
ORDER BY source
