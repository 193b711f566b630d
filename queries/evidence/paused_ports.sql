-- question: Which share of the time was each port paused by its neighbour, as either of them tells?
-- Where only frames are counted, each is taken for a pause of 84 us: 65,535 quanta at 400 Gb/s.
WITH shares AS (
  SELECT device, port, format,
    sum(coalesce(pfc_rx_pause_us, 84 * pfc_rx_frames)) / sum(seconds) / 1e6 AS stopped,
    sum(coalesce(pfc_tx_pause_us, 84 * pfc_tx_frames)) / sum(seconds) / 1e6 AS stopping
  FROM priority_rates
  WHERE coalesce(pfc_rx_pause_us, pfc_rx_frames, pfc_tx_pause_us, pfc_tx_frames) IS NOT NULL
  GROUP BY device, port, format, coalesce(queue, priority::VARCHAR)
),
placed AS (
  SELECT coalesce(p.owner, s.device) AS owner, coalesce(p.part, s.port) AS part, stopped, stopping
  FROM shares s LEFT JOIN port_parts p USING (device, port)
)
SELECT owner, part, max(share) AS pause_share
FROM (
  SELECT owner, part, stopped AS share FROM placed
  UNION ALL
  SELECT e.far_owner, e.far_part, p.stopping FROM placed p JOIN cable_ends e USING (owner, part)
)
WHERE share IS NOT NULL
GROUP BY owner, part
ORDER BY owner, part
