-- question: What did kernels of hosts and logs of switches report: GPU errors, link changes, storms, PCIe, memory?
-- columns:
--   host         host or switch
--   kind         xid, sxid, gpu_error, link_down, link_up, nic_error, pcie_error, port_down, pfc_storm, ...
--   code         its number, as of an Xid; the queue of a storm
--   part         GPU, NIC, port or PCI address
--   events       how often
--   first_seen   first of them, UTC; null where the log has no times
--   last_seen    last of them, UTC
--   example      text of the latest
-- example: fabricobs query host_events
--
-- Xid 79: the GPU fell off the bus; 74: NVLink; 48, 63, 64, 92, 94, 95: its memory; 13, 31, 43, 45:
-- mostly the program or a consequence. Link changes while the hosts boot are usual.
SELECT host, kind, code, part, count(*) AS events, min(ts) AS first_seen, max(ts) AS last_seen,
  arg_max(text, (coalesce(ts, '1970-01-01'::TIMESTAMP), line)) AS example
FROM events
WHERE host IS NOT NULL AND kind IN (
  'xid', 'sxid', 'gpu_error', 'link_down', 'link_up', 'nic_error', 'pcie_error', 'pcie_degraded',
  'out_of_memory', 'memory_error', 'hung_task', 'storage', 'cpu_throttled',
  'port_down', 'port_up', 'port_disabled', 'pfc_storm', 'pfc_storm_over', 'optics_alarm',
  'link_downs_counted', 'port_alarm'
)
GROUP BY host, kind, code, part
ORDER BY host, first_seen, kind, code, part;
