-- question: How much did NICs send again whose protocol does so now and then, and how much did the others?
-- NICs that count every packet sent again: EFA, Slingshot, ionic; no switch does. By interval; of several sources of a NIC
-- the one that saw most. `usual` and `usual_share` are the (lower) medians of the NICs of that source over the whole time,
-- a second and by packets sent; a NIC that sends ten times as much sends more again. `timeouts` had no answer in time, `impaired` are
-- connections that the NIC slowed down.
WITH counted AS (
  SELECT host_name(r.device) AS host, CASE WHEN p.is_nic THEN p.part ELSE regexp_replace(r.port, '/\d+$', '') END AS nic,
    r.device, r.format, r.ts_before, r.ts, r.seconds, r.tx_packets,
    r.retransmitted_packets AS resent, coalesce(r.path_timeouts, r.local_ack_timeout_err) AS timeouts,
    r.impaired_connections AS impaired, r.unresponsive_remote_events AS unanswered
  FROM port_rates r LEFT JOIN port_parts p ON p.device = r.device AND p.port = r.port
  WHERE r.retransmitted_packets IS NOT NULL AND r.seconds > 0
),
sources AS (
  SELECT host, nic, format FROM counted GROUP BY host, nic, format
  QUALIFY row_number() OVER (PARTITION BY host, nic ORDER BY sum(resent) DESC, format) = 1
),
best AS (
  FROM counted SEMI JOIN sources USING (host, nic, format)
),
nics AS (
  SELECT host, nic, format, sum(resent) / sum(seconds) AS per_second, sum(resent) / nullif(sum(tx_packets), 0) AS share
  FROM best GROUP BY host, nic, format
),
usual AS (
  SELECT format, quantile_disc(per_second, 0.5) AS usual, quantile_disc(share, 0.5) AS usual_share, count(*) AS nics
  FROM nics GROUP BY format
),
of_hosts AS (SELECT host, count(*) AS host_nics FROM nics GROUP BY host)
SELECT device, host, nic, ts_before, ts, resent, timeouts, impaired, unanswered, resent / seconds AS per_second, u.usual,
  resent / nullif(tx_packets, 0) AS share, u.usual_share, u.nics, h.host_nics
FROM best JOIN usual u USING (format) JOIN of_hosts h USING (host)
ORDER BY host, nic, ts
