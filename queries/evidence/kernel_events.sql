-- question: What did kernels of hosts and logs of switches report of GPUs, links, memory and storage, and when?
SELECT host_name(host) AS host, kind, ts, kind IN ('port_down', 'pfc_storm', 'optics_alarm', 'link_downs_counted', 'port_alarm') AS of_switch
FROM events
WHERE host IS NOT NULL AND ts IS NOT NULL AND kind IN (
  'xid', 'sxid', 'gpu_error', 'link_down', 'nic_error', 'pcie_error', 'pcie_degraded',
  'out_of_memory', 'memory_error', 'hung_task', 'storage', 'cpu_throttled',
  'port_down', 'pfc_storm', 'optics_alarm', 'link_downs_counted', 'port_alarm'
)
ORDER BY ts, host, kind
