-- question: Which share of its NICs' line rate does the main collective reach on each job?
-- A ring over hosts of k ranks each uses k NICs of a host: bus bandwidth over k times a NIC's rate.
WITH rates AS (
  SELECT job, median(speed_mbps) / 8000.0 AS nic_gbytes_per_second
  FROM nccl_nics WHERE plugin IS DISTINCT FROM 'Socket' AND speed_mbps > 0 GROUP BY job
),
calls AS (
  SELECT job, ts, busbw_gbytes_per_s AS gbytes_per_second, nranks * 1.0 / nullif(nodes, 0) AS ranks_of_host
  FROM main_collective WHERE nodes > 1 AND complete
)
SELECT c.job, c.ts, c.gbytes_per_second,
  c.gbytes_per_second / nullif(c.ranks_of_host * r.nic_gbytes_per_second, 0) AS share_of_line_rate
FROM calls c JOIN rates r ON r.job IS NOT DISTINCT FROM c.job
WHERE c.ts IS NOT NULL
ORDER BY c.job, c.ts
