-- question: From when to when did switches and NICs count, and how often were they read?
-- `counts` is 'traffic' (bytes and errors of ports) or 'pauses'; `usual_seconds` lie between two samples.
SELECT 'traffic' AS counts, min(ts_before) AS begins, max(ts) AS ends,
  median(seconds) AS usual_seconds
FROM port_rates HAVING count(*) > 0
UNION ALL
SELECT 'pauses', min(ts_before), max(ts), median(seconds) FROM pause_intervals HAVING count(*) > 0
