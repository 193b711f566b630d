-- question: What does each NIC of the training hosts show over the whole time, by bytes and by time?
-- One row a NIC; numbers are comparable between NICs, null where its source does not count them.
WITH counted AS (
  SELECT r.device, split_part(r.port, '/', 1) AS nic, sum(seconds) AS seconds,
    sum(coalesce(rx_bytes, 0) + coalesce(tx_bytes, 0)) / 1e9 AS gbytes,
    sum(out_of_sequence) AS out_of_sequence, sum(np_cnp_sent) AS cnp_sent,
    sum(rp_cnp_handled) AS cnp_handled,
    sum(coalesce(rx_errors, 0) + coalesce(symbol_errors, 0) + coalesce(rx_icrc_errors, 0)) AS errors
  FROM port_rates r
  SEMI JOIN training_hosts t ON t.host = host_name(r.device)
  WHERE r.port LIKE '%/%'
  GROUP BY ALL
),
paused AS (
  SELECT device, split_part(port, '/', 1) AS nic,
    sum(pfc_tx_pause_us) / 1e6 / sum(seconds) AS tx_pause_share,
    sum(pfc_rx_pause_us) / 1e6 / sum(seconds) AS rx_pause_share
  FROM priority_rates
  WHERE coalesce(pfc_tx_pause_us, pfc_rx_pause_us) IS NOT NULL
  GROUP BY ALL
)
SELECT NULL::VARCHAR AS job, 0 AS stage, host_name(c.device) AS host, c.nic,
  8 * c.gbytes / c.seconds AS traffic_gbps,
  c.out_of_sequence / c.gbytes AS out_of_sequence_per_gb,
  c.cnp_sent / c.seconds AS cnp_sent_per_second,
  c.cnp_handled / c.seconds AS cnp_handled_per_second,
  c.errors / c.gbytes AS errors_per_gb,
  p.tx_pause_share, p.rx_pause_share
FROM counted c
LEFT JOIN paused p ON p.device = c.device AND p.nic = c.nic
WHERE c.gbytes > 0 AND c.seconds > 0
ORDER BY host, nic
