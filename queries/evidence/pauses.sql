-- question: How long was each device paused, and how often did it pause its neighbours?
SELECT job, device, ts_before, ts, any_value(seconds) AS seconds,
  sum(pfc_rx_frames) / any_value(seconds) AS rx_frames_per_second,
  sum(pfc_tx_frames) / any_value(seconds) AS tx_frames_per_second,
  max(pfc_rx_pause_us / seconds) / 1e6 AS rx_pause_share,
  max(pfc_tx_pause_us / seconds) / 1e6 AS tx_pause_share
FROM priority_rates
WHERE coalesce(pfc_rx_frames, pfc_tx_frames, pfc_rx_pause_us, pfc_tx_pause_us) IS NOT NULL
GROUP BY job, device, ts_before, ts
ORDER BY device, ts
