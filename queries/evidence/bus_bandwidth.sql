-- question: Which share of the usual bandwidth does the main collective reach on each job?
-- Usual is what sound sites reach of the link rate of the NICs that the ranks of the communicator can use.
-- Of a job whose hosts run others too it is not known. `hosts` are those of the communicator.
WITH sizes AS (
  SELECT job, max(ranks) AS host_ranks
  FROM (SELECT job, host, count(DISTINCT rank) AS ranks FROM job_ranks WHERE host IS NOT NULL GROUP BY job, host)
  GROUP BY job
),
members AS (
  SELECT job, comm_id, list(DISTINCT host ORDER BY host) AS hosts
  FROM collectives WHERE host IS NOT NULL GROUP BY job, comm_id
),
calls AS (
  SELECT m.job, m.ts, m.busbw_gbytes_per_s AS gbytes_per_second,
    m.nranks * 1.0 / nullif(m.nodes, 0) AS ranks_of_host, h.hosts
  FROM main_collective m
  LEFT JOIN members h ON h.job IS NOT DISTINCT FROM m.job AND h.comm_id IS NOT DISTINCT FROM m.comm_id
  WHERE m.nodes > 1 AND m.complete
)
SELECT c.job, c.ts, c.hosts, c.gbytes_per_second,
  c.gbytes_per_second / nullif(n.link_gbytes_per_s * e.usual_share * least(c.ranks_of_host,
    coalesce(n.nics * least(1.0, c.ranks_of_host / s.host_ranks), c.ranks_of_host)), 0) AS share_of_usual
FROM calls c
JOIN job_networks n ON n.job IS NOT DISTINCT FROM c.job
JOIN expected_network_shares e
  ON n.link_gbytes_per_s * 8 > e.above_gbps AND n.link_gbytes_per_s * 8 <= e.up_to_gbps
LEFT JOIN sizes s ON s.job IS NOT DISTINCT FROM c.job
WHERE c.ts IS NOT NULL AND NOT EXISTS (FROM shared_hosts)
ORDER BY c.job, c.ts
