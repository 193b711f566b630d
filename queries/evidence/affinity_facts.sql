-- question: Through which NIC does the GPU of each rank send, and how far is it on PCIe?
-- Columns as in gpudirect_facts; a part is a GPU's index.
WITH used AS (
  SELECT job, rank, host, gpu, string_agg(DISTINCT nic, ', ' ORDER BY nic) AS nics,
    CASE WHEN count(DISTINCT nic) = 1 THEN any_value(nic) END AS nic
  FROM rank_paths
  WHERE connections > 0 AND gpu IS NOT NULL AND nic IS NOT NULL
  GROUP BY job, rank, host, gpu
),
legend AS (
  SELECT DISTINCT host_name(host) AS host, part, value AS device FROM hosts WHERE fact = 'device'
),
distances AS (
  SELECT host_name(h.host) AS host, regexp_extract(h.part, '^GPU(\d+)$', 1)::BIGINT AS gpu,
    coalesce(l.device, h.fact) AS nic, any_value(h.value) AS path
  FROM hosts h
  LEFT JOIN legend l ON l.host = host_name(h.host) AND l.part = h.fact
  WHERE regexp_matches(h.part, '^GPU\d+$') AND h.value IN ('PIX', 'PXB', 'PHB', 'NODE', 'SYS')
  GROUP BY ALL
)
SELECT job, host, rank, 'NIC of GPU' AS fact, gpu::VARCHAR AS part, nics AS value, NULL::BOOLEAN AS bad,
  true AS decides
FROM used
UNION ALL
SELECT u.job, u.host, u.rank, 'PCIe path to the NIC of GPU', u.gpu::VARCHAR, d.path, NULL, false
FROM used u JOIN distances d ON d.host = u.host AND d.gpu = u.gpu AND d.nic = u.nic
