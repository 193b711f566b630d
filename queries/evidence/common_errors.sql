-- question: Which counters of errors are beyond their limit on most ports of which a source tells them?
-- A row is a port and interval; ports that count far more than is usual of the others are at fault by themselves.
-- `per_second` is what the port counts, `ports` are those of which the source tells the counter. `resending` of the `nics`
-- that tell what they send again did so in `$intervals` intervals.
WITH wire AS (
  SELECT owner, part, is_nic, format, counter, ts_before, ts, risen / nullif(seconds, 0) AS per_second, broken, ports
  FROM evidence.broken_intervals WHERE alike
),
corrected AS (
  SELECT coalesce(switch, host) AS owner, coalesce(port, nic) AS part, type = 'nic' AS is_nic, format,
    'fec_corrected' AS counter, ts_before, ts, NULL AS per_second, broken, ports
  FROM evidence.fec_margins WHERE alike
),
rows AS (FROM wire UNION ALL FROM corrected),
again AS (
  SELECT owner, part FROM evidence.sick_intervals WHERE counter_family(counter) = 'resend'
  GROUP BY owner, part HAVING count(DISTINCT ts) >= $intervals
)
SELECT CASE WHEN is_nic THEN 'host' ELSE 'switch' END AS type, CASE WHEN is_nic THEN owner END AS host,
  CASE WHEN NOT is_nic THEN owner END AS switch, part, format, counter, ts_before, ts, per_second, broken, ports,
  (SELECT count(*) FROM again) AS resending, (SELECT count(*) FROM evidence.loss_counters WHERE resends) AS nics
FROM rows
ORDER BY counter, format, owner, part, ts
