-- question: Does each rank send with GPUDirect RDMA, and are the modules for it loaded on its host?
-- Facts for the comparison of hosts: `bad` says that the value is wrong wherever it stands (null:
-- only a difference is), `decides` whether it accuses by itself or only supports. nvidia_peermem
-- decides nothing: DMA-BUF does without it. Sockets know no GPUDirect: they are another question.
SELECT job, host, rank, 'GPUDirect RDMA' AS fact, NULL::VARCHAR AS part,
  CASE WHEN gdr THEN 'on' ELSE 'off' END AS value, NOT gdr AS bad, true AS decides
FROM (
  SELECT r.job, r.rank, r.host, r.network, r.nodes, coalesce(c.gdr, r.ring_gdr) AS gdr
  FROM (
    SELECT w.job, w.rank, w.host, w.pid, any_value(r.network) AS network,
      bool_and(r.ring_gdr) AS ring_gdr, max(r.nodes) AS nodes
    FROM job_ranks w
    JOIN ranks r ON r.job IS NOT DISTINCT FROM w.job AND r.host = w.host AND r.pid = w.pid
    GROUP BY w.job, w.rank, w.host, w.pid
  ) r
  LEFT JOIN (
    SELECT job, host, pid, bool_and(gdr) FILTER (transport = 'NET') AS gdr
    FROM nccl_channels GROUP BY job, host, pid
  ) c ON c.job IS NOT DISTINCT FROM r.job AND c.host = r.host AND c.pid = r.pid
)
WHERE gdr IS NOT NULL AND network IS DISTINCT FROM 'Socket' AND nodes IS DISTINCT FROM 1
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
