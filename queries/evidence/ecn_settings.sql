-- question: From how many bytes in a queue does each switch mark packets?
SELECT device, profile, min(try_cast(value AS BIGINT)) AS min_threshold_bytes
FROM settings
WHERE name LIKE '%min_threshold' AND try_cast(value AS BIGINT) IS NOT NULL
GROUP BY device, profile
ORDER BY device, profile
