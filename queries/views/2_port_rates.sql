-- Counters of ports and NICs as rises between samples.
--
-- A row is the interval between two samples of one port: `ts_before` to `ts`, `seconds` long.
-- Every counter column is the rise in that interval, NULL where it cannot be known (see rise).
-- `gap` marks an interval more than three times the usual one: rates hold, maxima do not.
CREATE OR REPLACE VIEW port_rates AS
WITH rules AS (
  SELECT format, map_from_entries(list((counter, {
    'most': 2 ^ width, 'width': width, 'overflow': overflow, 'kind': kind
  }))) AS rules
  FROM (SELECT DISTINCT * FROM counter_info WHERE table_name = 'port_samples')
  GROUP BY format
),
-- Looked up once a format: a map asked in every row costs more than all else here.
info AS (
  SELECT format, {
    rx_bytes: rules['rx_bytes'], tx_bytes: rules['tx_bytes'], rx_packets: rules['rx_packets'],
    tx_packets: rules['tx_packets'], rx_errors: rules['rx_errors'], tx_errors: rules['tx_errors'],
    rx_discards: rules['rx_discards'], tx_discards: rules['tx_discards'],
    rx_oversize: rules['rx_oversize'], symbol_errors: rules['symbol_errors'],
    link_error_recovery: rules['link_error_recovery'], link_downed: rules['link_downed'],
    rcv_remote_physical_errors: rules['rcv_remote_physical_errors'],
    local_link_integrity_errors: rules['local_link_integrity_errors'],
    excessive_buffer_overrun: rules['excessive_buffer_overrun'],
    rcv_switch_relay_errors: rules['rcv_switch_relay_errors'], vl15_dropped: rules['vl15_dropped'],
    xmit_wait: rules['xmit_wait'], fec_corrected: rules['fec_corrected'],
    fec_uncorrected: rules['fec_uncorrected'], out_of_sequence: rules['out_of_sequence'],
    packet_seq_err: rules['packet_seq_err'], local_ack_timeout_err: rules['local_ack_timeout_err'],
    rnr_nak_retry_err: rules['rnr_nak_retry_err'],
    implied_nak_seq_err: rules['implied_nak_seq_err'],
    duplicate_request: rules['duplicate_request'],
    roce_adaptive_retransmissions: rules['roce_adaptive_retransmissions'],
    roce_slow_restart: rules['roce_slow_restart'], rx_icrc_errors: rules['rx_icrc_errors'],
    rx_out_of_buffer: rules['rx_out_of_buffer'],
    np_ecn_marked_packets: rules['np_ecn_marked_packets'], np_cnp_sent: rules['np_cnp_sent'],
    rp_cnp_handled: rules['rp_cnp_handled'], rp_cnp_ignored: rules['rp_cnp_ignored'],
    pause_storm_warnings: rules['pause_storm_warnings'],
    pause_storm_errors: rules['pause_storm_errors'], pause_rx_frames: rules['pause_rx_frames'],
    pause_tx_frames: rules['pause_tx_frames']
  } AS of
  FROM rules
),
-- One row a moment: duplicated snapshots and counters from several files of one dump fall together.
moments AS (
  SELECT job, format, device, port, ts, max(ts_source) AS ts_source,
    max(rx_bytes) AS rx_bytes,
    max(tx_bytes) AS tx_bytes,
    max(rx_packets) AS rx_packets,
    max(tx_packets) AS tx_packets,
    max(rx_errors) AS rx_errors,
    max(tx_errors) AS tx_errors,
    max(rx_discards) AS rx_discards,
    max(tx_discards) AS tx_discards,
    max(rx_oversize) AS rx_oversize,
    max(symbol_errors) AS symbol_errors,
    max(link_error_recovery) AS link_error_recovery,
    max(link_downed) AS link_downed,
    max(rcv_remote_physical_errors) AS rcv_remote_physical_errors,
    max(local_link_integrity_errors) AS local_link_integrity_errors,
    max(excessive_buffer_overrun) AS excessive_buffer_overrun,
    max(rcv_switch_relay_errors) AS rcv_switch_relay_errors,
    max(vl15_dropped) AS vl15_dropped,
    max(xmit_wait) AS xmit_wait,
    max(fec_corrected) AS fec_corrected,
    max(fec_uncorrected) AS fec_uncorrected,
    max(out_of_sequence) AS out_of_sequence,
    max(packet_seq_err) AS packet_seq_err,
    max(local_ack_timeout_err) AS local_ack_timeout_err,
    max(rnr_nak_retry_err) AS rnr_nak_retry_err,
    max(implied_nak_seq_err) AS implied_nak_seq_err,
    max(duplicate_request) AS duplicate_request,
    max(roce_adaptive_retransmissions) AS roce_adaptive_retransmissions,
    max(roce_slow_restart) AS roce_slow_restart,
    max(rx_icrc_errors) AS rx_icrc_errors,
    max(rx_out_of_buffer) AS rx_out_of_buffer,
    max(np_ecn_marked_packets) AS np_ecn_marked_packets,
    max(np_cnp_sent) AS np_cnp_sent,
    max(rp_cnp_handled) AS rp_cnp_handled,
    max(rp_cnp_ignored) AS rp_cnp_ignored,
    max(pause_storm_warnings) AS pause_storm_warnings,
    max(pause_storm_errors) AS pause_storm_errors,
    max(pause_rx_frames) AS pause_rx_frames,
    max(pause_tx_frames) AS pause_tx_frames
  FROM named_samples
  WHERE ts IS NOT NULL
  GROUP BY job, format, device, port, ts
),
paired AS (
  SELECT *, lag(ts) OVER w AS ts_before, epoch(ts) - epoch(lag(ts) OVER w) AS seconds,
    lag(rx_bytes) OVER w AS rx_bytes_before,
    lag(tx_bytes) OVER w AS tx_bytes_before,
    lag(rx_packets) OVER w AS rx_packets_before,
    lag(tx_packets) OVER w AS tx_packets_before,
    lag(rx_errors) OVER w AS rx_errors_before,
    lag(tx_errors) OVER w AS tx_errors_before,
    lag(rx_discards) OVER w AS rx_discards_before,
    lag(tx_discards) OVER w AS tx_discards_before,
    lag(rx_oversize) OVER w AS rx_oversize_before,
    lag(symbol_errors) OVER w AS symbol_errors_before,
    lag(link_error_recovery) OVER w AS link_error_recovery_before,
    lag(link_downed) OVER w AS link_downed_before,
    lag(rcv_remote_physical_errors) OVER w AS rcv_remote_physical_errors_before,
    lag(local_link_integrity_errors) OVER w AS local_link_integrity_errors_before,
    lag(excessive_buffer_overrun) OVER w AS excessive_buffer_overrun_before,
    lag(rcv_switch_relay_errors) OVER w AS rcv_switch_relay_errors_before,
    lag(vl15_dropped) OVER w AS vl15_dropped_before,
    lag(xmit_wait) OVER w AS xmit_wait_before,
    lag(fec_corrected) OVER w AS fec_corrected_before,
    lag(fec_uncorrected) OVER w AS fec_uncorrected_before,
    lag(out_of_sequence) OVER w AS out_of_sequence_before,
    lag(packet_seq_err) OVER w AS packet_seq_err_before,
    lag(local_ack_timeout_err) OVER w AS local_ack_timeout_err_before,
    lag(rnr_nak_retry_err) OVER w AS rnr_nak_retry_err_before,
    lag(implied_nak_seq_err) OVER w AS implied_nak_seq_err_before,
    lag(duplicate_request) OVER w AS duplicate_request_before,
    lag(roce_adaptive_retransmissions) OVER w AS roce_adaptive_retransmissions_before,
    lag(roce_slow_restart) OVER w AS roce_slow_restart_before,
    lag(rx_icrc_errors) OVER w AS rx_icrc_errors_before,
    lag(rx_out_of_buffer) OVER w AS rx_out_of_buffer_before,
    lag(np_ecn_marked_packets) OVER w AS np_ecn_marked_packets_before,
    lag(np_cnp_sent) OVER w AS np_cnp_sent_before,
    lag(rp_cnp_handled) OVER w AS rp_cnp_handled_before,
    lag(rp_cnp_ignored) OVER w AS rp_cnp_ignored_before,
    lag(pause_storm_warnings) OVER w AS pause_storm_warnings_before,
    lag(pause_storm_errors) OVER w AS pause_storm_errors_before,
    lag(pause_rx_frames) OVER w AS pause_rx_frames_before,
    lag(pause_tx_frames) OVER w AS pause_tx_frames_before
  FROM moments
  WINDOW w AS (PARTITION BY job, format, device, port ORDER BY ts)
),
-- Joined: the same as a window's median sorts all columns once more.
usual AS (
  SELECT job, format, device, port, median(seconds) AS usual_seconds FROM paired WHERE seconds > 0 GROUP BY ALL
)
SELECT p.job, p.format, p.device, p.port, ts_before, ts, ts_source, seconds,
  seconds > 3 * usual_seconds AS gap,
  rise(rx_bytes_before, rx_bytes, of.rx_bytes, seconds) AS rx_bytes,
  rise(tx_bytes_before, tx_bytes, of.tx_bytes, seconds) AS tx_bytes,
  rise(rx_packets_before, rx_packets, of.rx_packets, seconds) AS rx_packets,
  rise(tx_packets_before, tx_packets, of.tx_packets, seconds) AS tx_packets,
  rise(rx_errors_before, rx_errors, of.rx_errors, seconds) AS rx_errors,
  rise(tx_errors_before, tx_errors, of.tx_errors, seconds) AS tx_errors,
  rise(rx_discards_before, rx_discards, of.rx_discards, seconds) AS rx_discards,
  rise(tx_discards_before, tx_discards, of.tx_discards, seconds) AS tx_discards,
  rise(rx_oversize_before, rx_oversize, of.rx_oversize, seconds) AS rx_oversize,
  rise(symbol_errors_before, symbol_errors, of.symbol_errors, seconds) AS symbol_errors,
  rise(link_error_recovery_before, link_error_recovery, of.link_error_recovery, seconds) AS link_error_recovery,
  rise(link_downed_before, link_downed, of.link_downed, seconds) AS link_downed,
  rise(rcv_remote_physical_errors_before, rcv_remote_physical_errors, of.rcv_remote_physical_errors, seconds) AS rcv_remote_physical_errors,
  rise(local_link_integrity_errors_before, local_link_integrity_errors, of.local_link_integrity_errors, seconds) AS local_link_integrity_errors,
  rise(excessive_buffer_overrun_before, excessive_buffer_overrun, of.excessive_buffer_overrun, seconds) AS excessive_buffer_overrun,
  rise(rcv_switch_relay_errors_before, rcv_switch_relay_errors, of.rcv_switch_relay_errors, seconds) AS rcv_switch_relay_errors,
  rise(vl15_dropped_before, vl15_dropped, of.vl15_dropped, seconds) AS vl15_dropped,
  rise(xmit_wait_before, xmit_wait, of.xmit_wait, seconds) AS xmit_wait,
  rise(fec_corrected_before, fec_corrected, of.fec_corrected, seconds) AS fec_corrected,
  rise(fec_uncorrected_before, fec_uncorrected, of.fec_uncorrected, seconds) AS fec_uncorrected,
  rise(out_of_sequence_before, out_of_sequence, of.out_of_sequence, seconds) AS out_of_sequence,
  rise(packet_seq_err_before, packet_seq_err, of.packet_seq_err, seconds) AS packet_seq_err,
  rise(local_ack_timeout_err_before, local_ack_timeout_err, of.local_ack_timeout_err, seconds) AS local_ack_timeout_err,
  rise(rnr_nak_retry_err_before, rnr_nak_retry_err, of.rnr_nak_retry_err, seconds) AS rnr_nak_retry_err,
  rise(implied_nak_seq_err_before, implied_nak_seq_err, of.implied_nak_seq_err, seconds) AS implied_nak_seq_err,
  rise(duplicate_request_before, duplicate_request, of.duplicate_request, seconds) AS duplicate_request,
  rise(roce_adaptive_retransmissions_before, roce_adaptive_retransmissions, of.roce_adaptive_retransmissions, seconds) AS roce_adaptive_retransmissions,
  rise(roce_slow_restart_before, roce_slow_restart, of.roce_slow_restart, seconds) AS roce_slow_restart,
  rise(rx_icrc_errors_before, rx_icrc_errors, of.rx_icrc_errors, seconds) AS rx_icrc_errors,
  rise(rx_out_of_buffer_before, rx_out_of_buffer, of.rx_out_of_buffer, seconds) AS rx_out_of_buffer,
  rise(np_ecn_marked_packets_before, np_ecn_marked_packets, of.np_ecn_marked_packets, seconds) AS np_ecn_marked_packets,
  rise(np_cnp_sent_before, np_cnp_sent, of.np_cnp_sent, seconds) AS np_cnp_sent,
  rise(rp_cnp_handled_before, rp_cnp_handled, of.rp_cnp_handled, seconds) AS rp_cnp_handled,
  rise(rp_cnp_ignored_before, rp_cnp_ignored, of.rp_cnp_ignored, seconds) AS rp_cnp_ignored,
  rise(pause_storm_warnings_before, pause_storm_warnings, of.pause_storm_warnings, seconds) AS pause_storm_warnings,
  rise(pause_storm_errors_before, pause_storm_errors, of.pause_storm_errors, seconds) AS pause_storm_errors,
  rise(pause_rx_frames_before, pause_rx_frames, of.pause_rx_frames, seconds) AS pause_rx_frames,
  rise(pause_tx_frames_before, pause_tx_frames, of.pause_tx_frames, seconds) AS pause_tx_frames
FROM paired p LEFT JOIN info ON info.format = p.format
JOIN usual u ON u.job IS NOT DISTINCT FROM p.job
  AND u.format IS NOT DISTINCT FROM p.format
  AND u.device IS NOT DISTINCT FROM p.device
  AND u.port IS NOT DISTINCT FROM p.port
WHERE seconds > 0;
