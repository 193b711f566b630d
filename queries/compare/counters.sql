-- question: How often did the ports of one side pause, mark and notify congestion, a second and port?
-- A row is a counter in a stretch of the usual sampling interval; ports are sampled one after another.
-- An interval belongs to the side its middle lies in. Counters without a job are of every job.
-- columns:
--   counter  Which
--   moment   Begin of the stretch, UTC
--   rate     Mean over the ports that count it: a second, or a share of the time for pause_share
WITH usual AS (
  SELECT greatest(ceil(median(seconds)), 1)::BIGINT AS seconds FROM port_rates
),
ports AS (
  SELECT ts, ts_before, r.seconds, pause_rx_frames, pause_tx_frames,
    np_ecn_marked_packets AS ecn_received, np_cnp_sent AS cnp_sent, rp_cnp_handled AS cnp_handled,
    NULL AS pause_share, NULL AS ecn_marked
  FROM port_rates r
  WHERE r.job IS NULL OR r.job IS NOT DISTINCT FROM $job::VARCHAR
  UNION ALL
  SELECT ts, ts_before, seconds, pfc_rx_frames, pfc_tx_frames, NULL, NULL, NULL,
    pfc_rx_pause_us / 1e6, ecn_marked_packets
  FROM priority_rates
  WHERE job IS NULL OR job IS NOT DISTINCT FROM $job::VARCHAR
),
placed AS (
  SELECT p.*, time_bucket(to_seconds(u.seconds), p.ts) AS moment
  FROM ports p, usual u
  WHERE p.ts_before + (p.ts - p.ts_before) / 2 > $begin::TIMESTAMP
    AND p.ts_before + (p.ts - p.ts_before) / 2 <= $end::TIMESTAMP
)
UNPIVOT (
  SELECT moment,
    sum(pause_share) / sum(seconds) FILTER (pause_share IS NOT NULL) AS pause_share,
    sum(pause_rx_frames) / sum(seconds) FILTER (pause_rx_frames IS NOT NULL) AS pause_rx_frames,
    sum(pause_tx_frames) / sum(seconds) FILTER (pause_tx_frames IS NOT NULL) AS pause_tx_frames,
    sum(ecn_marked) / sum(seconds) FILTER (ecn_marked IS NOT NULL) AS ecn_marked,
    sum(ecn_received) / sum(seconds) FILTER (ecn_received IS NOT NULL) AS ecn_received,
    sum(cnp_sent) / sum(seconds) FILTER (cnp_sent IS NOT NULL) AS cnp_sent,
    sum(cnp_handled) / sum(seconds) FILTER (cnp_handled IS NOT NULL) AS cnp_handled
  FROM placed
  GROUP BY moment
)
ON pause_share, pause_rx_frames, pause_tx_frames, ecn_marked, ecn_received, cnp_sent, cnp_handled
INTO NAME counter VALUE rate
ORDER BY counter, moment
