-- question: Which storms did the PFC watchdogs of the switches detect, and where do they watch?
SELECT r.device AS switch, r.port, c.far_owner AS host, c.far_part AS nic, r.device, r.ts_before,
  r.ts, r.pfcwd_detected AS detected
FROM priority_rates r
LEFT JOIN cable_ends c ON c.owner = r.device AND c.part = r.port AND c.far_is_nic
WHERE r.pfcwd_detected IS NOT NULL
ORDER BY r.device, r.port, r.ts
