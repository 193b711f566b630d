-- question: Of how many hosts of the jobs is a kernel log there?
SELECT count(DISTINCT j.host) FILTER (k.host IS NOT NULL) AS told, count(DISTINCT j.host) AS hosts
FROM job_ranks j
LEFT JOIN (
  SELECT DISTINCT host_name(device) AS host FROM files WHERE formats LIKE '%kernel_log%'
) k USING (host)
