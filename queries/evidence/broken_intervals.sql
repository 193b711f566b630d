-- question: In which intervals did which port count errors on the wire, beyond the rate its standard allows?
-- Errors are rates of the bits received: `$rate` in 10^12 bits may be wrong. A port is beyond it by all of its
-- intervals together, or by a single one (as many trials as intervals), at the false discovery rate
-- `$rate_q` over all ports counted (Benjamini and Hochberg). Ports whose bits are not known stay, and so
-- do events that no standard allows by the bit. `lasts` says that a counter rose in `$intervals` intervals,
-- or by more than `$risen`.
WITH wire AS (
  SELECT * FROM evidence.sick_intervals WHERE counter_family(counter) = 'wire'
),
exposed AS (
  SELECT w.owner, w.part, w.counter, w.risen, b.bits, b.intervals,
    events_at_least(w.risen, $rate / 1e12 * coalesce(8.0 * w.rx_bytes, b.bits)) AS once
  FROM wire w JOIN evidence.received_bits b USING (owner, part)
  WHERE w.counter NOT IN ('link_error_recovery', 'local_link_integrity_errors')
),
tested AS (
  SELECT owner, part, counter, least(1, 2 * least(min(once) * any_value(intervals),
    events_at_least(sum(risen), $rate / 1e12 * any_value(bits)))) AS p
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
)
SELECT w.*, sum(w.risen) OVER c > $risen OR count(*) OVER c >= $intervals AS lasts
FROM wire w
ANTI JOIN (SELECT * FROM controlled WHERE q >= $rate_q) s USING (owner, part, counter)
WINDOW c AS (PARTITION BY w.owner, w.part, w.counter)
ORDER BY w.owner, w.part, w.counter, w.ts
