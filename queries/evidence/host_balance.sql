-- question: Did the NICs of each host receive more in the RDMA class than they sent?
-- A ring brings each NIC as much as it sends; what comes on top is not the job's. Counters of whole ports tell
-- no class: what comes on top there may be storage in a class of its own.
WITH best AS (
  SELECT format FROM nic_bytes WHERE seen_at = 'nic' AND sent IS NOT NULL
    AND format IN (SELECT format FROM priority_rates WHERE rx_bytes IS NOT NULL)
  GROUP BY format
  QUALIFY row_number() OVER (ORDER BY count(*) DESC, format) = 1
)
SELECT host, device, ts_before, ts, any_value(seconds) AS seconds, count(*) AS nics,
  sum(received) AS received, sum(sent) AS sent,
  count(*) FILTER (received > 1.1 * sent) AS receiving_more
FROM nic_bytes SEMI JOIN best USING (format)
WHERE seen_at = 'nic'
GROUP BY host, device, ts_before, ts
ORDER BY host, ts
