-- question: What did kernels of hosts and logs of switches report: GPU errors, link changes, storms, PCIe, memory?
-- columns:
--   host         host or switch
--   kind         xid, sxid, gpu_error, gpu_fault, link_down, link_up, nic_error, pcie_error, port_down, pfc_storm, port_alarm, ...
--   code         its number, as of an Xid; the queue of a storm
--   part         GPU, NIC, port or PCI address
--   gpu          index of the GPU on its host, where it is known
--   events       how often
--   first_seen   first of them, UTC; null where the log has no times
--   last_seen    last of them, UTC
--   example      text of the latest
-- lines:
--   events   kind IN ('xid', 'sxid', 'gpu_error', 'link_down', 'nic_error', 'pcie_error', 'pcie_degraded', 'out_of_memory', 'memory_error', 'hung_task', 'storage', 'cpu_throttled', 'port_down', 'pfc_storm', 'optics_alarm', 'port_alarm')
-- example: fabricobs query host_events
--
-- Xid 79: the GPU fell off the bus; 74: NVLink; 48, 63, 64, 92, 94, 95: its memory; 13, 31, 43, 45:
-- mostly the program or a consequence. Link changes while the hosts boot are usual. `port_alarm`: what a switch or UFM says
-- of storms, optics or errors of a port in words of no known layout; read its text. `gpu_fault`: what samples of GPUs tell
-- (nvidia-smi, DCGM); its number is that of column `faults` of query `gpu_health`.
WITH told AS (
  SELECT host, kind, code, part, gpu, ts, text, line FROM named_events
  UNION ALL
  SELECT host, 'gpu_fault', nullif(faults, 0), gpu::VARCHAR, gpu, ts,
    concat_ws(', ',
      CASE WHEN faults & 1 > 0 THEN 'values that cannot be read' END,
      CASE WHEN faults & 2 > 0 THEN 'memory that waits for a reset to be remapped' END,
      CASE WHEN faults & 4 > 0 THEN 'memory that could not be remapped' END,
      CASE WHEN faults & 8 > 0 THEN 'its driver asks for a reset' END,
      CASE WHEN ecc_uncorrected > 0 THEN format('{} uncorrected errors of its memory', ecc_uncorrected) END), NULL
  FROM gpu_states WHERE faults > 0 OR ecc_uncorrected > 0
)
SELECT host, kind, code, part, gpu, count(*) AS events, min(ts) AS first_seen, max(ts) AS last_seen,
  arg_max(text, (coalesce(ts, '1970-01-01'::TIMESTAMP), coalesce(line, 0))) AS example
FROM told
WHERE host IS NOT NULL AND kind IN (
  'xid', 'sxid', 'gpu_error', 'gpu_fault', 'link_down', 'link_up', 'nic_error', 'pcie_error', 'pcie_degraded',
  'out_of_memory', 'memory_error', 'hung_task', 'storage', 'cpu_throttled',
  'port_down', 'port_up', 'port_disabled', 'pfc_storm', 'pfc_storm_over', 'optics_alarm',
  'link_downs_counted', 'port_alarm'
)
GROUP BY host, kind, code, part, gpu
ORDER BY host, first_seen, kind, code, part, gpu;
