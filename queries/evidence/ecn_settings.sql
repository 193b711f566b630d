-- question: From how many bytes in a queue does each switch, or port of it, mark packets?
SELECT device, profile, min(try_cast(value AS BIGINT)) AS min_threshold_bytes
FROM switch_settings
WHERE name LIKE '%min_threshold' AND try_cast(value AS BIGINT) IS NOT NULL
GROUP BY device, port, profile
ORDER BY device, profile, min_threshold_bytes
