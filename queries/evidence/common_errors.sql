-- question: Which counters of errors are beyond their limit on most ports of which a source tells them?
-- A row is a port and interval; ports that count far more than is usual of the others are at fault by themselves.
-- `ports` are those of which the source tells the counter. `resending` of the `nics` that tell what they send again did so in
-- `$intervals` intervals.
WITH rows AS (
  SELECT CASE WHEN is_nic THEN owner END AS host, CASE WHEN NOT is_nic THEN owner END AS switch,
    format, counter, ts_before, ts, broken, ports
  FROM evidence.broken_intervals WHERE alike
  UNION ALL
  SELECT host, switch, format, 'fec_corrected', ts_before, ts, broken, ports
  FROM evidence.fec_margins WHERE alike
),
again AS (
  SELECT owner, part FROM evidence.sick_intervals WHERE counter_family(counter) = 'resend'
  GROUP BY owner, part HAVING count(DISTINCT ts) >= $intervals
)
SELECT CASE WHEN host IS NULL THEN 'switch' ELSE 'host' END AS type, *,
  (SELECT count(*) FROM again) AS resending, (SELECT count(*) FROM evidence.loss_counters WHERE resends) AS nics
FROM rows
ORDER BY counter, format, host, switch, ts
