-- Counters of priorities and queues as rises between samples.
--
-- A row is the interval between two samples of one priority or queue: `ts_before` to `ts`, `seconds` long.
-- Every counter column is the rise in that interval, NULL where it cannot be known (see rise).
-- `gap` marks an interval more than three times the usual one: rates hold, maxima do not.
CREATE OR REPLACE VIEW priority_rates AS
WITH rules AS (
  SELECT format, map_from_entries(list((counter, {
    'most': 2 ^ width, 'width': width, 'overflow': overflow, 'kind': kind
  }))) AS rules
  FROM (SELECT DISTINCT * FROM counter_info WHERE table_name = 'priority_samples')
  GROUP BY format
),
-- Looked up once a format: a map asked in every row costs more than all else here.
info AS (
  SELECT format, {
    rx_bytes: rules['rx_bytes'], tx_bytes: rules['tx_bytes'], rx_packets: rules['rx_packets'],
    tx_packets: rules['tx_packets'], pfc_rx_frames: rules['pfc_rx_frames'],
    pfc_tx_frames: rules['pfc_tx_frames'], pfc_rx_pause_us: rules['pfc_rx_pause_us'],
    pfc_tx_pause_us: rules['pfc_tx_pause_us'], pfc_rx_transitions: rules['pfc_rx_transitions'],
    ecn_marked_packets: rules['ecn_marked_packets'], ecn_marked_bytes: rules['ecn_marked_bytes'],
    drop_packets: rules['drop_packets'], drop_bytes: rules['drop_bytes'],
    watermark_bytes: rules['watermark_bytes'],
    headroom_watermark_bytes: rules['headroom_watermark_bytes'],
    pfcwd_detected: rules['pfcwd_detected'], pfcwd_restored: rules['pfcwd_restored']
  } AS of
  FROM rules
),
-- A number for every priority and queue: grouping and ordering by six names takes a third longer.
series AS (
  SELECT *, row_number() OVER () AS series
  FROM (
    SELECT DISTINCT job, format, device, port, priority, queue
    FROM named_priority_samples WHERE ts IS NOT NULL
  )
),
-- One row a moment: duplicated snapshots and counters from several files of one dump fall together.
moments AS (
  SELECT series, ts, max(ts_source) AS ts_source,
    max(rx_bytes) AS rx_bytes,
    max(tx_bytes) AS tx_bytes,
    max(rx_packets) AS rx_packets,
    max(tx_packets) AS tx_packets,
    max(pfc_rx_frames) AS pfc_rx_frames,
    max(pfc_tx_frames) AS pfc_tx_frames,
    max(pfc_rx_pause_us) AS pfc_rx_pause_us,
    max(pfc_tx_pause_us) AS pfc_tx_pause_us,
    max(pfc_rx_transitions) AS pfc_rx_transitions,
    max(ecn_marked_packets) AS ecn_marked_packets,
    max(ecn_marked_bytes) AS ecn_marked_bytes,
    max(drop_packets) AS drop_packets,
    max(drop_bytes) AS drop_bytes,
    max(watermark_bytes) AS watermark_bytes,
    max(headroom_watermark_bytes) AS headroom_watermark_bytes,
    max(pfcwd_detected) AS pfcwd_detected,
    max(pfcwd_restored) AS pfcwd_restored
  FROM named_priority_samples n
  LEFT JOIN series s ON s.job IS NOT DISTINCT FROM n.job
    AND s.format IS NOT DISTINCT FROM n.format
    AND s.device IS NOT DISTINCT FROM n.device
    AND s.port IS NOT DISTINCT FROM n.port
    AND s.priority IS NOT DISTINCT FROM n.priority
    AND s.queue IS NOT DISTINCT FROM n.queue
  WHERE ts IS NOT NULL
  GROUP BY series, ts
),
paired AS (
  SELECT *, lag(ts) OVER w AS ts_before, epoch(ts) - epoch(lag(ts) OVER w) AS seconds,
    lag(rx_bytes) OVER w AS rx_bytes_before,
    lag(tx_bytes) OVER w AS tx_bytes_before,
    lag(rx_packets) OVER w AS rx_packets_before,
    lag(tx_packets) OVER w AS tx_packets_before,
    lag(pfc_rx_frames) OVER w AS pfc_rx_frames_before,
    lag(pfc_tx_frames) OVER w AS pfc_tx_frames_before,
    lag(pfc_rx_pause_us) OVER w AS pfc_rx_pause_us_before,
    lag(pfc_tx_pause_us) OVER w AS pfc_tx_pause_us_before,
    lag(pfc_rx_transitions) OVER w AS pfc_rx_transitions_before,
    lag(ecn_marked_packets) OVER w AS ecn_marked_packets_before,
    lag(ecn_marked_bytes) OVER w AS ecn_marked_bytes_before,
    lag(drop_packets) OVER w AS drop_packets_before,
    lag(drop_bytes) OVER w AS drop_bytes_before,
    lag(watermark_bytes) OVER w AS watermark_bytes_before,
    lag(headroom_watermark_bytes) OVER w AS headroom_watermark_bytes_before,
    lag(pfcwd_detected) OVER w AS pfcwd_detected_before,
    lag(pfcwd_restored) OVER w AS pfcwd_restored_before
  FROM moments
  WINDOW w AS (PARTITION BY series ORDER BY ts)
),
-- Joined: the same as a window's median sorts all columns once more.
usual AS (
  SELECT series, median(seconds) AS usual_seconds FROM paired WHERE seconds > 0 GROUP BY series
),
known AS (
  SELECT s.*, usual_seconds, of
  FROM series s JOIN usual USING (series) LEFT JOIN info ON info.format = s.format
)
SELECT k.job, k.format, k.device, k.port, k.priority, k.queue, ts_before, ts, ts_source, seconds,
  seconds > 3 * usual_seconds AS gap,
  rise(rx_bytes_before, rx_bytes, of.rx_bytes, seconds) AS rx_bytes,
  rise(tx_bytes_before, tx_bytes, of.tx_bytes, seconds) AS tx_bytes,
  rise(rx_packets_before, rx_packets, of.rx_packets, seconds) AS rx_packets,
  rise(tx_packets_before, tx_packets, of.tx_packets, seconds) AS tx_packets,
  rise(pfc_rx_frames_before, pfc_rx_frames, of.pfc_rx_frames, seconds) AS pfc_rx_frames,
  rise(pfc_tx_frames_before, pfc_tx_frames, of.pfc_tx_frames, seconds) AS pfc_tx_frames,
  rise(pfc_rx_pause_us_before, pfc_rx_pause_us, of.pfc_rx_pause_us, seconds) AS pfc_rx_pause_us,
  rise(pfc_tx_pause_us_before, pfc_tx_pause_us, of.pfc_tx_pause_us, seconds) AS pfc_tx_pause_us,
  rise(pfc_rx_transitions_before, pfc_rx_transitions, of.pfc_rx_transitions, seconds) AS pfc_rx_transitions,
  rise(ecn_marked_packets_before, ecn_marked_packets, of.ecn_marked_packets, seconds) AS ecn_marked_packets,
  rise(ecn_marked_bytes_before, ecn_marked_bytes, of.ecn_marked_bytes, seconds) AS ecn_marked_bytes,
  rise(drop_packets_before, drop_packets, of.drop_packets, seconds) AS drop_packets,
  rise(drop_bytes_before, drop_bytes, of.drop_bytes, seconds) AS drop_bytes,
  rise(watermark_bytes_before, watermark_bytes, of.watermark_bytes, seconds) AS watermark_bytes,
  rise(headroom_watermark_bytes_before, headroom_watermark_bytes, of.headroom_watermark_bytes, seconds) AS headroom_watermark_bytes,
  rise(pfcwd_detected_before, pfcwd_detected, of.pfcwd_detected, seconds) AS pfcwd_detected,
  rise(pfcwd_restored_before, pfcwd_restored, of.pfcwd_restored, seconds) AS pfcwd_restored
FROM paired JOIN known k USING (series)
WHERE seconds > 0;
