-- question: In which intervals did which port count errors on the wire, beyond the rate its standard allows?
-- Errors are rates of the bits received: `$rate` in 10^12 bits may be wrong after FEC, on links above 100 Gb/s
-- `$rate_fast`. What breaks code words breaks idle ones too: symbols and code words are rates of the line's
-- bits where its speed is known. A port is beyond its limit by all of its
-- intervals together, or by a single one (as many trials as intervals), at the false discovery rate
-- `$rate_q` over all ports counted (Benjamini and Hochberg). Ports whose bits are not known stay, and so
-- do events that no standard allows by the bit. `lasts` says that a counter rose in `$intervals` intervals,
-- or by more than `$risen`. `alike` says that most ports of its source are beyond their limit and this one is so by less
-- than `$odd` times what is usual of them: what the counter counts is then no fault of one cable.
WITH wire AS (
  SELECT * FROM evidence.sick_intervals WHERE counter_family(counter) = 'wire'
),
exposed AS (
  SELECT *, events_at_least(risen, allowed / 1e12 * coalesce(own_bits, bits)) AS once
  FROM (
    SELECT w.owner, w.part, w.counter, w.risen, b.intervals,
      CASE WHEN b.speed_gbps > 100 THEN $rate_fast ELSE $rate END AS allowed,
      w.counter IN ('symbol_errors', 'fec_uncorrected') AS of_line,
      CASE WHEN of_line THEN greatest(b.bits, b.line_bits) ELSE b.bits END AS bits,
      CASE WHEN of_line THEN greatest(8.0 * w.rx_bytes, 1e9 * b.speed_gbps * w.seconds)
        ELSE 8.0 * w.rx_bytes END AS own_bits
    FROM wire w JOIN evidence.received_bits b USING (owner, part)
    WHERE w.counter NOT IN ('link_error_recovery', 'local_link_integrity_errors')
  )
),
tested AS (
  SELECT owner, part, counter, least(1, 2 * least(min(once) * any_value(intervals),
    events_at_least(sum(risen), any_value(allowed) / 1e12 * any_value(bits)))) AS p,
    any_value(bits) AS bits, any_value(allowed) AS allowed
  FROM exposed GROUP BY owner, part, counter
),
ranked AS (
  SELECT *, row_number() OVER (ORDER BY p, owner, part, counter) AS place,
    greatest((SELECT count(*) FROM evidence.counted_ports), count(*) OVER ()) AS tests
  FROM tested
),
controlled AS (
  SELECT *, min(p * tests / place) OVER (
      ORDER BY place ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
    ) AS q
  FROM ranked
),
beyond AS (
  SELECT w.*, t.bits, t.allowed, sum(w.risen) OVER c > $risen OR count(*) OVER c >= $intervals AS lasts
  FROM wire w
  LEFT JOIN tested t USING (owner, part, counter)
  ANTI JOIN (SELECT * FROM controlled WHERE q >= $rate_q) s USING (owner, part, counter)
  WINDOW c AS (PARTITION BY w.owner, w.part, w.counter)
),
amounts AS (
  SELECT owner, part, counter, format, sum(risen) / coalesce(any_value(bits) / 1e12, 1) AS amount
  FROM beyond WHERE lasts GROUP BY owner, part, counter, format
),
common AS (
  SELECT a.format, a.counter, median(a.amount) AS usual, count(*) AS broken, any_value(e.ports) AS ports
  FROM amounts a JOIN evidence.error_counters e USING (format, counter)
  WHERE e.of_sound
  GROUP BY a.format, a.counter
  HAVING count(*) >= greatest($fewest, $most * any_value(e.ports))
)
SELECT b.*, c.broken, c.ports, coalesce(a.amount < $odd * c.usual, false) AS alike
FROM beyond b
LEFT JOIN amounts a USING (owner, part, counter, format)
LEFT JOIN common c USING (format, counter)
ORDER BY b.owner, b.part, b.counter, b.ts
