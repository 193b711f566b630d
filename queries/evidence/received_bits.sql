-- question: How many bits did each port receive, in how many intervals between its samples?
-- Errors are rates of these. Of several sources the one that saw most bytes. `line_bits` are those that
-- its speed makes of the `seconds` counted: a link carries code words while nothing is sent, too.
WITH by_source AS (
  SELECT coalesce(p.owner, r.device) AS owner, coalesce(p.part, r.port) AS part, r.format,
    8 * sum(r.rx_bytes)::DOUBLE AS bits, count(r.rx_bytes) AS intervals, sum(r.seconds) AS seconds
  FROM port_rates r LEFT JOIN port_parts p USING (device, port)
  WHERE r.rx_bytes IS NOT NULL
  GROUP BY ALL
)
SELECT b.owner, b.part, max(b.bits) AS bits, arg_max(b.intervals, b.bits) AS intervals,
  any_value(s.speed_gbps) AS speed_gbps,
  1e9 * any_value(s.speed_gbps) * arg_max(b.seconds, b.bits) AS line_bits
FROM by_source b LEFT JOIN evidence.port_speeds s USING (owner, part)
WHERE b.bits > 0
GROUP BY b.owner, b.part
ORDER BY b.owner, b.part
