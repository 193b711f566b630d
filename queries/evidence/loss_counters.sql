-- question: On how many ports are drops of switches and retransmissions of NICs known?
WITH known AS (
  SELECT coalesce(p.owner, r.device) AS owner, coalesce(p.part, r.port) AS part,
    count(coalesce(r.packet_seq_err, r.out_of_sequence, r.local_ack_timeout_err, r.path_timeouts)) > 0 AS resends,
    count(coalesce(r.tx_discards, r.rx_discards)) > 0 AS drops
  FROM port_rates r LEFT JOIN port_parts p USING (device, port)
  GROUP BY ALL
)
SELECT k.owner, k.part, e.far_owner, coalesce(e.is_nic, false) AS is_nic,
  coalesce(e.far_is_nic, false) AS far_is_nic, k.resends, k.drops
FROM known k LEFT JOIN cable_ends e USING (owner, part)
ORDER BY k.owner, k.part
