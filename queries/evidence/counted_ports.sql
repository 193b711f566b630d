-- question: Of which ports are the rises of error counters known, and which counters tell nothing?
-- `stopped` names counters that were sampled, but whose rise is known in no interval from any source:
-- an old total at the highest value the counter can show. `rated`: the bytes it receives are counted, too.
WITH sampled AS (
  SELECT device, port, format, count(rx_errors) AS rx_errors, count(symbol_errors) AS symbol_errors,
    count(fec_uncorrected) AS fec_uncorrected, count(link_error_recovery) AS link_error_recovery,
    count(link_downed) AS link_downed
  FROM named_samples WHERE ts IS NOT NULL GROUP BY device, port, format HAVING min(ts) < max(ts)
),
known AS (
  SELECT device, port, format, count(rx_errors) AS rx_errors, count(symbol_errors) AS symbol_errors,
    count(fec_uncorrected) AS fec_uncorrected, count(link_error_recovery) AS link_error_recovery,
    count(link_downed) AS link_downed, count(rx_bytes) AS bytes
  FROM port_rates GROUP BY device, port, format
),
counters AS (
  SELECT device, port, counter, sum(samples) AS samples, 0 AS rises
  FROM sampled UNPIVOT (samples FOR counter IN (
    rx_errors, symbol_errors, fec_uncorrected, link_error_recovery, link_downed
  )) GROUP BY ALL
  UNION ALL
  SELECT device, port, counter, 0, sum(rises)
  FROM known UNPIVOT (rises FOR counter IN (
    rx_errors, symbol_errors, fec_uncorrected, link_error_recovery, link_downed
  )) GROUP BY ALL
),
parts AS (
  SELECT coalesce(p.owner, c.device) AS owner, coalesce(p.part, c.port) AS part,
    coalesce(p.is_nic, false) AS is_nic, counter, sum(samples) AS samples, sum(rises) AS rises
  FROM counters c LEFT JOIN port_parts p USING (device, port)
  GROUP BY ALL
),
rated AS (
  SELECT DISTINCT coalesce(p.owner, k.device) AS owner, coalesce(p.part, k.port) AS part, true AS rated
  FROM known k LEFT JOIN port_parts p USING (device, port)
  WHERE k.bytes > 0
)
SELECT owner, part, any_value(is_nic) AS is_nic, sum(rises) > 0 AS known,
  string_agg(counter, ', ' ORDER BY counter) FILTER (samples > 1 AND rises = 0) AS stopped,
  coalesce(any_value(rated), false) AS rated
FROM parts LEFT JOIN rated USING (owner, part)
GROUP BY owner, part
HAVING sum(samples) > 0
ORDER BY owner, part
