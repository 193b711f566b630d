-- question: Which NICs dropped what arrived because the host had posted no buffer for it, and how often?
-- `usual` is the (lower) median of all NICs of the job, over the whole time. Of several sources of a NIC the
-- one that saw most.
WITH counted AS (
  SELECT p.owner AS host, p.part AS nic, r.device, r.format, r.ts_before, r.ts,
    r.rx_out_of_buffer AS dropped, r.rx_out_of_buffer / r.seconds AS per_second
  FROM port_rates r JOIN port_parts p ON p.device = r.device AND p.port = r.port
  WHERE p.is_nic AND r.rx_out_of_buffer IS NOT NULL AND r.seconds > 0
),
sources AS (
  SELECT host, nic, format FROM counted GROUP BY host, nic, format
  QUALIFY row_number() OVER (PARTITION BY host, nic ORDER BY sum(dropped) DESC, format) = 1
),
best AS (
  FROM counted SEMI JOIN sources USING (host, nic, format)
),
nics AS (
  SELECT host, nic, sum(dropped) / sum(epoch(ts - ts_before)) AS per_second FROM best GROUP BY host, nic
)
SELECT device, host, nic, ts_before, ts, dropped, per_second,
  (SELECT quantile_disc(per_second, 0.5) FROM nics) AS usual, (SELECT count(*) FROM nics) AS nics
FROM best
ORDER BY host, nic, ts
