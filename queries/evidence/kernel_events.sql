-- question: What did the kernels of the hosts report of GPUs, NICs, memory and storage, and when?
SELECT host_name(host) AS host, kind, ts
FROM events
WHERE host IS NOT NULL AND ts IS NOT NULL AND kind IN (
  'xid', 'sxid', 'gpu_error', 'link_down', 'nic_error', 'pcie_error', 'pcie_degraded',
  'out_of_memory', 'memory_error', 'hung_task', 'storage', 'cpu_throttled'
)
ORDER BY ts, host, kind
