-- question: What does each switch port show over the whole time, beside the ports of its role?
-- One row a port that carries traffic; `stage` parts uplinks from ports towards hosts.
WITH traffic AS (
  SELECT device, port, sum(seconds) AS seconds,
    sum(coalesce(tx_bytes, 0)) AS tx_bytes, sum(coalesce(tx_packets, 0)) AS tx_packets
  FROM port_traffic
  GROUP BY device, port
),
faults AS (
  SELECT device, port,
    sum(coalesce(rx_errors, 0) + coalesce(symbol_errors, 0) + coalesce(fec_uncorrected, 0)) AS errors,
    sum(coalesce(tx_discards, 0) + coalesce(rx_discards, 0)) AS discards
  FROM port_rates
  GROUP BY device, port
),
paused AS (
  SELECT device, port, sum(pfc_tx_frames) / sum(seconds) AS pause_tx_per_second,
    sum(pfc_rx_frames) / sum(seconds) AS pause_rx_per_second
  FROM priority_rates
  WHERE coalesce(pfc_tx_frames, pfc_rx_frames) IS NOT NULL
  GROUP BY device, port
)
SELECT NULL::VARCHAR AS job, (g.device IS NOT NULL)::INTEGER AS stage,
  t.device AS switch, t.port,
  CASE WHEN t.tx_bytes > 0 THEN 8e-9 * t.tx_bytes / t.seconds END AS sent_gbps,
  t.tx_packets / t.seconds / 1e3 AS sent_kpps,
  f.errors / t.seconds AS errors_per_second,
  f.discards / t.seconds AS discards_per_second,
  p.pause_tx_per_second, p.pause_rx_per_second
FROM traffic t
LEFT JOIN faults f ON f.device = t.device AND f.port = t.port
LEFT JOIN paused p ON p.device = t.device AND p.port = t.port
LEFT JOIN (SELECT DISTINCT device, port FROM uplink_groups) g ON g.device = t.device AND g.port = t.port
ANTI JOIN known_hosts h ON h.host = host_name(t.device)
WHERE t.seconds > 0 AND t.tx_bytes + t.tx_packets > 0
ORDER BY switch, port
