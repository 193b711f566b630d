-- question: What of the bus bandwidth of collectives is known: their times, sizes, NICs and link rates?
SELECT count(*) AS calls, count(*) FILTER (c.bytes > 0) AS sized,
  count(*) FILTER (c.nodes > 1) AS between,
  count(*) FILTER (c.nodes > 1 AND n.nics > 0) AS nics,
  count(*) FILTER (c.nodes > 1 AND n.link_gbytes_per_s > 0) AS rated,
  count(*) FILTER (c.nodes > 1 AND s.job IS NOT NULL) AS shared,
  (SELECT count(*) FROM job_networks WHERE nics > 0 AND link_gbytes_per_s > 0) AS networks
FROM collective_calls c
LEFT JOIN job_networks n ON n.job IS NOT DISTINCT FROM c.job
LEFT JOIN (
  SELECT DISTINCT coalesce(job, '') AS job FROM job_ranks SEMI JOIN shared_hosts USING (host)
) s ON s.job = coalesce(c.job, '')
