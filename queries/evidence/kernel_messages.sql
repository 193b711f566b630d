-- question: Of which hosts of the jobs is a kernel log there, and when did it tell of their hardware?
-- `ts` is null where it has no such message, or none with a time.
WITH logs AS (
  SELECT DISTINCT host_name(device) AS host FROM files WHERE formats LIKE '%kernel_log%'
),
told AS (
  SELECT host_name(host) AS host, ts FROM events
  WHERE kind IN ('xid', 'sxid', 'gpu_error', 'pcie_degraded', 'pcie_error', 'memory_error', 'nic_error', 'cpu_throttled')
)
SELECT l.host, t.ts
FROM logs l LEFT JOIN told t USING (host)
WHERE l.host IN (SELECT host FROM job_ranks)
ORDER BY l.host, t.ts
