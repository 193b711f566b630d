-- question: When did each host's ranks end each step, by the host's own clock?
SELECT s.job, s.step, host_name(s.host) AS host, median(epoch(s.ts)) AS ended
FROM steps s
WHERE s.host IS NOT NULL AND s.rank IS NOT NULL AND s.ts IS NOT NULL AND s.step IS NOT NULL
GROUP BY s.job, s.step, host_name(s.host)
ORDER BY s.job, s.step, host
