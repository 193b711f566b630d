-- question: Does each rank send with GPUDirect RDMA, and are the modules for it loaded on its host?
-- Facts for the comparison of hosts: `bad` says that the value is wrong wherever it stands (null:
-- only a difference is), `decides` whether it accuses by itself or only supports. nvidia_peermem
-- decides nothing: DMA-BUF does without it. Sockets know no GPUDirect: they are another question.
SELECT job, host, rank, 'GPUDirect RDMA' AS fact, NULL::VARCHAR AS part,
  CASE WHEN gdr THEN 'on' ELSE 'off' END AS value, NOT gdr AS bad, true AS decides
FROM (
  SELECT p.job, p.host, w.rank, p.gdr
  FROM nccl_processes p
  LEFT JOIN job_ranks w
    ON w.job IS NOT DISTINCT FROM p.job AND w.host IS NOT DISTINCT FROM p.host AND w.pid = p.pid
  WHERE p.gdr IS NOT NULL AND p.nodes IS DISTINCT FROM 1 AND p.host IS NOT NULL
)
UNION ALL
SELECT j.job, j.host, NULL, 'module nvidia_peermem', NULL,
  CASE WHEN m.loaded THEN 'loaded' ELSE 'not loaded' END, NULL, false
FROM (SELECT DISTINCT job, host FROM job_ranks) j
JOIN (
  SELECT host_name(host) AS host, bool_or(value IN ('nvidia_peermem', 'nv_peer_mem')) AS loaded
  FROM hosts WHERE fact = 'module' GROUP BY host_name(host)
) m USING (host)
UNION ALL
SELECT j.job, j.host, NULL, 'DMA-BUF', NULL,
  CASE WHEN d.host IS NULL THEN 'not available' ELSE 'available' END, NULL, false
FROM (SELECT DISTINCT job, host FROM job_ranks) j
LEFT JOIN (SELECT DISTINCT host_name(host) AS host FROM hosts WHERE fact = 'dma_buf') d USING (host)
WHERE EXISTS (SELECT 1 FROM hosts WHERE fact = 'dma_buf')
