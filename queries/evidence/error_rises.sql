-- question: Which counters that a sick link raises have risen, and in how many intervals?
WITH rises AS (
  UNPIVOT (
    SELECT device, port, ts, rx_errors, symbol_errors, link_downed, link_error_recovery,
      fec_uncorrected, local_link_integrity_errors, rx_icrc_errors
    FROM port_rates
  )
  ON rx_errors, symbol_errors, link_downed, link_error_recovery, fec_uncorrected,
    local_link_integrity_errors, rx_icrc_errors
  INTO NAME counter VALUE risen
)
SELECT device, port, counter, sum(risen) AS risen,
  count(*) FILTER (risen > 0) AS intervals_with_rise, count(*) AS intervals
FROM rises
GROUP BY device, port, counter
ORDER BY risen DESC, device, port, counter
