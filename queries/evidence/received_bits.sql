-- question: How many bits did each port receive, in how many intervals between its samples?
-- Errors are rates of these. Of several sources the one that saw most bytes.
WITH by_source AS (
  SELECT coalesce(p.owner, r.device) AS owner, coalesce(p.part, r.port) AS part, r.format,
    8 * sum(r.rx_bytes)::DOUBLE AS bits, count(r.rx_bytes) AS intervals
  FROM port_rates r LEFT JOIN port_parts p USING (device, port)
  WHERE r.rx_bytes IS NOT NULL
  GROUP BY ALL
)
SELECT owner, part, max(bits) AS bits, arg_max(intervals, bits) AS intervals
FROM by_source WHERE bits > 0
GROUP BY owner, part
ORDER BY owner, part
