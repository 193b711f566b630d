-- question: Which ports of one side counted errors, drops or retransmissions, and in how many intervals?
-- An interval belongs to the side its middle lies in. Counters without a job are of every job.
-- columns:
--   device               Switch, or host for a NIC
--   port                 Port
--   counter              Which
--   risen                By how much it rose
--   intervals_with_rise  Intervals in which it rose
--   intervals            Intervals counted
WITH rises AS (
  UNPIVOT (
    SELECT device, port, rx_errors, tx_errors, rx_discards, tx_discards, symbol_errors,
      link_error_recovery, link_downed, local_link_integrity_errors, fec_uncorrected,
      rx_icrc_errors, out_of_sequence, packet_seq_err, local_ack_timeout_err, rx_out_of_buffer
    FROM port_rates
    WHERE (job IS NULL OR job IS NOT DISTINCT FROM $job::VARCHAR)
      AND ts_before + (ts - ts_before) / 2 > $begin::TIMESTAMP
      AND ts_before + (ts - ts_before) / 2 <= $end::TIMESTAMP
  )
  ON rx_errors, tx_errors, rx_discards, tx_discards, symbol_errors, link_error_recovery,
    link_downed, local_link_integrity_errors, fec_uncorrected, rx_icrc_errors, out_of_sequence,
    packet_seq_err, local_ack_timeout_err, rx_out_of_buffer
  INTO NAME counter VALUE rise
)
SELECT device, port, counter, sum(rise)::BIGINT AS risen,
  count(*) FILTER (rise > 0) AS intervals_with_rise, count(*) AS intervals
FROM rises
GROUP BY device, port, counter
ORDER BY device, port, counter
