-- question: How many errors of the link did each port count, over the bits it received?
-- columns:
--   part    Host or switch, and its port
--   errors  Rise of the counter of errors that rose most
--   value   Errors per 10^12 bits received; null where these are not counted
WITH bits AS (
  SELECT owner, part, max(bits) AS bits FROM (
    SELECT coalesce(p.owner, r.device) AS owner, coalesce(p.part, r.port) AS part, r.format,
      8 * sum(r.rx_bytes)::DOUBLE AS bits
    FROM port_rates r LEFT JOIN port_parts p USING (device, port)
    WHERE r.rx_bytes IS NOT NULL
    GROUP BY ALL
  )
  GROUP BY owner, part
),
errors AS (
  SELECT owner, part, max(risen) AS errors FROM (
    SELECT coalesce(p.owner, e.device) AS owner, coalesce(p.part, e.port) AS part, e.counter,
      sum(e.risen) AS risen
    FROM error_rises e LEFT JOIN port_parts p USING (device, port)
    WHERE counter_family(e.counter) = 'wire'
    GROUP BY ALL
  )
  GROUP BY owner, part
)
SELECT owner || ' ' || part AS part, errors, 1e12 * errors / nullif(bits, 0) AS value
FROM errors LEFT JOIN bits USING (owner, part)
-- Ports that carry nothing show nothing.
WHERE bits IS NULL OR bits >= 0.001 * (SELECT max(bits) FROM bits) OR errors > 0
ORDER BY value DESC NULLS LAST, errors DESC, part
