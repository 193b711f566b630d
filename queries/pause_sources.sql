-- question: Who pauses its neighbours (PFC), and who does so without being paused?
-- columns:
--   job                    job the counters were ingested for
--   device                 switch, or host for a NIC
--   port                   port
--   priority               priority
--   role                   source, forwards, or paused: see below
--   tx_frames_per_second   pause frames sent: it told the neighbour to stop, 1/s
--   rx_frames_per_second   pause frames received: it was told to stop, 1/s
--   tx_pause_share         share of time it stopped the neighbour, 0 to 1
--   rx_pause_share         share of time it was stopped, 0 to 1
--   worst_tx_pause_share   the largest tx_pause_share of one interval
--   worst_rx_pause_share   the largest rx_pause_share of one interval
--   intervals_with_pause   intervals with any pause
--   intervals              intervals with counters
-- counters: pfc_tx_frames, pfc_tx_pause_us, pfc_rx_frames, pfc_rx_pause_us, pause_tx_frames, pause_rx_frames
-- example: fabricobs query pause_sources
--
-- `source`: sends pauses while its device receives at most a tenth as many in that priority: a slow
-- receiver if it is a NIC, a congested egress if it is a switch. `forwards`: sends, and is paused as
-- well. `paused`: sends none, or its device sends at most a tenth of what it receives. The tenth is
-- our choice, against the few pauses of a healthy fabric; mind the rates. Role is null where
-- received pauses are not counted. Ports without any pause are left out. SONiC counts frames only.
WITH intervals AS (
  SELECT job, device, port, priority, ts_before, ts, max(seconds) AS seconds,
    max(pfc_tx_frames) AS tx_frames,
    max(pfc_rx_frames) AS rx_frames,
    max(pfc_tx_pause_us) / 1e6 AS tx_seconds,
    max(pfc_rx_pause_us) / 1e6 AS rx_seconds
  FROM priority_rates
  WHERE coalesce(pfc_rx_frames, pfc_tx_frames, pfc_rx_pause_us, pfc_tx_pause_us) IS NOT NULL
  GROUP BY job, device, port, priority, ts_before, ts
),
ports AS (
  SELECT job, device, port, priority,
    sum(tx_frames) / sum(seconds) FILTER (tx_frames IS NOT NULL) AS tx_frames_per_second,
    sum(rx_frames) / sum(seconds) FILTER (rx_frames IS NOT NULL) AS rx_frames_per_second,
    sum(tx_seconds) / sum(seconds) FILTER (tx_seconds IS NOT NULL) AS tx_pause_share,
    sum(rx_seconds) / sum(seconds) FILTER (rx_seconds IS NOT NULL) AS rx_pause_share,
    max(tx_seconds / seconds) AS worst_tx_pause_share,
    max(rx_seconds / seconds) AS worst_rx_pause_share,
    count(*) FILTER (greatest(tx_frames, rx_frames, tx_seconds, rx_seconds) > 0)
      AS intervals_with_pause,
    count(*) AS intervals,
    coalesce(sum(tx_frames), sum(tx_seconds)) AS sent,
    coalesce(sum(rx_frames), sum(rx_seconds)) AS received
  FROM intervals
  GROUP BY job, device, port, priority
),
devices AS (
  SELECT *,
    sum(sent) OVER w AS device_sent,
    sum(received) OVER w AS device_received
  FROM ports
  WINDOW w AS (PARTITION BY job, device, priority)
)
SELECT job, device, port, priority,
  CASE
    WHEN device_received IS NULL THEN NULL
    WHEN coalesce(sent, 0) = 0 OR device_sent <= 0.1 * device_received THEN 'paused'
    WHEN device_received <= 0.1 * device_sent THEN 'source'
    ELSE 'forwards'
  END AS role,
  tx_frames_per_second, rx_frames_per_second, tx_pause_share, rx_pause_share,
  worst_tx_pause_share, worst_rx_pause_share, intervals_with_pause, intervals
FROM devices
WHERE intervals_with_pause > 0
ORDER BY job, CASE role WHEN 'source' THEN 0 WHEN 'forwards' THEN 1 WHEN 'paused' THEN 2 ELSE 3 END,
  tx_pause_share DESC NULLS LAST, tx_frames_per_second DESC NULLS LAST,
  rx_frames_per_second DESC NULLS LAST, device, port, priority;
