-- question: Which share of the time was each port paused by its neighbour?
-- Where only frames are counted, each is taken for a pause of 84 us: 65,535 quanta at 400 Gb/s.
WITH shares AS (
  SELECT device, port, format,
    sum(coalesce(pfc_rx_pause_us, 84 * pfc_rx_frames)) / sum(seconds) / 1e6 AS share
  FROM priority_rates
  WHERE pfc_rx_pause_us IS NOT NULL OR pfc_rx_frames IS NOT NULL
  GROUP BY device, port, format, coalesce(queue, priority::VARCHAR)
)
SELECT coalesce(p.owner, s.device) AS owner, coalesce(p.part, s.port) AS part,
  max(share) AS rx_pause_share
FROM shares s LEFT JOIN port_parts p USING (device, port)
GROUP BY ALL
ORDER BY owner, part
