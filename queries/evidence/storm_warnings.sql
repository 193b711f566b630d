-- question: Which NICs did their own driver see storm?
SELECT n.host, n.nic, n.leaf AS switch, n.leaf_port AS port, r.device, r.ts_before, r.ts,
  coalesce(r.pause_storm_warnings, 0) + coalesce(r.pause_storm_errors, 0) AS warnings
FROM port_rates r JOIN nic_ends n ON n.host = host_name(r.device) AND n.name = r.port
WHERE coalesce(r.pause_storm_warnings, r.pause_storm_errors) IS NOT NULL
  AND coalesce(r.pause_storm_warnings, 0) + coalesce(r.pause_storm_errors, 0) > 0
ORDER BY n.host, n.nic, r.ts
