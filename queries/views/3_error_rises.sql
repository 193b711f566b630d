-- Rises of all counters of errors, drops, retransmissions, slow hosts and storms: one row an interval,
-- port and counter.
CREATE OR REPLACE VIEW error_rises AS
SELECT job, device, port, format, ts_before, ts, seconds, counter, risen
FROM port_rates UNPIVOT (risen FOR counter IN (COLUMNS(
  lambda c: counter_family(c) IN ('wire', 'link', 'drop', 'resend', 'error', 'host', 'storm')
)))
UNION ALL
SELECT job, device, port, format, ts_before, ts, seconds, counter, risen
FROM (
  SELECT job, device, port, format, ts_before, ts, seconds,
    sum(drop_packets)::BIGINT AS drop_packets, sum(pfcwd_detected)::BIGINT AS pfcwd_detected
  FROM priority_rates
  GROUP BY job, device, port, format, ts_before, ts, seconds
) UNPIVOT (risen FOR counter IN (drop_packets, pfcwd_detected));
