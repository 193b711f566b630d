-- question: What did these parts count over time: errors, drops, pauses, marks and bytes?
-- `$parts` are ports and NICs by owner and name ('leaf01 Ethernet8'), with `$ends` also what hangs at
-- the other end of their cables; `$switches` are summed over all their ports. Of several sources of
-- one counter the one that saw most is taken. Intervals are joined to at most $bins.
-- columns:
--   part    The part's name, or the switch's
--   signal  Name of the counter
--   peak    Highest rate, a second; of bytes in Gb/s
--   begins  Begins of the intervals, UTC, as ISO 8601
--   ends    Their ends
--   rates   Their rates
WITH wanted AS (
  SELECT owner, part FROM cable_ends WHERE list_contains($parts::VARCHAR[], owner || ' ' || part)
  UNION
  SELECT owner, part FROM port_parts WHERE list_contains($parts::VARCHAR[], owner || ' ' || part)
  UNION
  SELECT far_owner, far_part FROM cable_ends
  WHERE $ends::BOOLEAN AND list_contains($parts::VARCHAR[], owner || ' ' || part)
),
asked AS (
  SELECT device, port, owner || ' ' || part AS name FROM port_parts SEMI JOIN wanted USING (owner, part)
  UNION
  SELECT device, port, owner FROM port_parts WHERE list_contains($switches::VARCHAR[], owner)
),
of_ports AS (
  SELECT a.name, r.* EXCLUDE (job, ts_source, gap) FROM port_rates r JOIN asked a USING (device, port)
),
of_priorities AS (
  SELECT a.name, r.device, r.port, r.format, r.ts_before, r.ts, any_value(r.seconds) AS seconds,
    sum(r.pfc_rx_frames)::BIGINT AS pfc_rx_frames, sum(r.pfc_tx_frames)::BIGINT AS pfc_tx_frames,
    sum(r.ecn_marked_packets)::BIGINT AS ecn_marked_packets,
    sum(r.drop_packets)::BIGINT AS drop_packets, sum(r.tx_bytes)::BIGINT AS tx_bytes,
    sum(r.pfcwd_detected)::BIGINT AS pfcwd_detected
  FROM priority_rates r JOIN asked a USING (device, port)
  GROUP BY ALL
),
rises AS (
  SELECT name, device, port, format, ts_before, ts, seconds, signal, risen
  FROM of_ports UNPIVOT (risen FOR signal IN (
    rx_errors, tx_errors, symbol_errors, fec_uncorrected, link_error_recovery, link_downed,
    local_link_integrity_errors, rx_icrc_errors, rx_discards, tx_discards, out_of_sequence,
    packet_seq_err, local_ack_timeout_err, roce_adaptive_retransmissions, np_ecn_marked_packets,
    np_cnp_sent, rx_bytes, tx_bytes
  ))
  UNION ALL
  SELECT name, device, port, format, ts_before, ts, seconds, signal, risen
  FROM of_priorities UNPIVOT (risen FOR signal IN (
    pfc_rx_frames, pfc_tx_frames, ecn_marked_packets, drop_packets, pfcwd_detected, tx_bytes
  ))
),
best AS (
  SELECT name, signal, device, port, format FROM rises
  GROUP BY name, signal, device, port, format
  QUALIFY row_number() OVER (
    PARTITION BY name, signal, port, device ORDER BY sum(risen) DESC, format
  ) = 1
),
chosen AS (SELECT * FROM rises SEMI JOIN best USING (name, signal, device, port, format)),
placed AS (
  SELECT *, (min(epoch(ts_before)) OVER ()) AS first,
    greatest((max(epoch(ts)) OVER () - min(epoch(ts_before)) OVER ()) / $bins::BIGINT, 1e-3) AS width
  FROM chosen WHERE ts_before IS NOT NULL
),
by_port AS (
  SELECT name, signal, list_contains($switches::VARCHAR[], name) AS is_switch,
    list_contains($parts::VARCHAR[] || $switches::VARCHAR[], name) AS own, device, port, 
    floor((epoch(ts_before) - first) / width) AS bin, min(ts_before) AS ts_before, max(ts) AS ts, sum(risen) / nullif(sum(seconds), 0) AS rate
  FROM placed
  GROUP BY ALL
),
-- A NIC has a counter under several names (its RDMA device and its net device): they are one.
by_part AS (
  SELECT name, signal, own, bin, min(ts_before) AS ts_before, max(ts) AS ts,
    CASE WHEN is_switch THEN sum(rate) ELSE max(rate) END
      * CASE WHEN signal IN ('rx_bytes', 'tx_bytes') THEN 8e-9 ELSE 1 END AS rate
  FROM by_port WHERE rate IS NOT NULL
  GROUP BY name, signal, own, is_switch, bin
)
SELECT name AS part, signal, max(rate) AS peak,
  list(strftime(ts_before, '%Y-%m-%dT%H:%M:%S.%gZ') ORDER BY bin) AS begins,
  list(strftime(ts, '%Y-%m-%dT%H:%M:%S.%gZ') ORDER BY bin) AS ends,
  list(rate ORDER BY bin) AS rates
FROM by_part
GROUP BY name, signal
ORDER BY max(own) DESC,
  signal IN ('rx_bytes', 'tx_bytes'), name, sum(rate) DESC, signal
