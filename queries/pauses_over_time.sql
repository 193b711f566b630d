-- question: When did each port pause its neighbour (PFC), and when was it paused?
-- columns:
--   job                    job the counters were ingested for
--   window_start           begin of the window, UTC
--   device                 switch, or host for a NIC
--   port                   port; the NIC where counters of a host name its port or net device
--   priority               priority
--   tx_frames_per_second   pause frames sent: it told the neighbour to stop, 1/s
--   rx_frames_per_second   pause frames received: it was told to stop, 1/s
--   tx_pause_share         share of time it stopped the neighbour, 0 to 1
--   rx_pause_share         share of time it was stopped, 0 to 1
-- counters: pfc_tx_frames, pfc_tx_pause_us, pfc_rx_frames, pfc_rx_pause_us, pause_tx_frames, pause_rx_frames
-- example: fabricobs query pauses_over_time
--
-- The time of the counters is cut into 30 windows, none shorter than 30 s; an interval belongs to the
-- window it ends in. Ports that never pause and are never paused are left out.
WITH intervals AS (
  SELECT r.job, p.owner AS device, p.part AS port, priority, ts_before, ts, max(seconds) AS seconds,
    max(pfc_tx_frames) AS tx_frames,
    max(pfc_rx_frames) AS rx_frames,
    max(pfc_tx_pause_us) / 1e6 AS tx_seconds,
    max(pfc_rx_pause_us) / 1e6 AS rx_seconds
  FROM priority_rates r JOIN port_parts p USING (device, port)
  WHERE coalesce(pfc_rx_frames, pfc_tx_frames, pfc_rx_pause_us, pfc_tx_pause_us) IS NOT NULL
  GROUP BY ALL
),
span AS (
  SELECT min(ts_before) AS begin, window_seconds(min(ts_before), max(ts)) AS seconds
  FROM intervals
),
placed AS (
  SELECT i.*, window_of(i.ts, n.begin, n.seconds) AS window_start
  FROM intervals i, span n
),
windows AS (
  SELECT job, window_start, device, port, priority,
    sum(tx_frames) / sum(seconds) FILTER (tx_frames IS NOT NULL) AS tx_frames_per_second,
    sum(rx_frames) / sum(seconds) FILTER (rx_frames IS NOT NULL) AS rx_frames_per_second,
    sum(tx_seconds) / sum(seconds) FILTER (tx_seconds IS NOT NULL) AS tx_pause_share,
    sum(rx_seconds) / sum(seconds) FILTER (rx_seconds IS NOT NULL) AS rx_pause_share
  FROM placed
  GROUP BY job, window_start, device, port, priority
)
SELECT * FROM windows
QUALIFY max(greatest(tx_frames_per_second, rx_frames_per_second, tx_pause_share, rx_pause_share))
  OVER (PARTITION BY job, device, port, priority) > 0
ORDER BY job, window_start, tx_pause_share DESC NULLS LAST, tx_frames_per_second DESC NULLS LAST,
  rx_frames_per_second DESC NULLS LAST, device, port, priority;
