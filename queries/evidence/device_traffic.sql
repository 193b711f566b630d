-- question: How many bytes did each device send in each interval between two of its snapshots?
-- All its ports together, from the one source that counts bytes of most of them.
WITH by_source AS (
  SELECT device, format, ts_before, ts, any_value(seconds) AS seconds, count(*) AS ports,
    sum(tx_bytes) AS tx_bytes
  FROM port_traffic
  WHERE tx_bytes IS NOT NULL AND NOT coalesce(gap, false)
  GROUP BY device, format, ts_before, ts
),
best AS (
  SELECT device, format FROM by_source GROUP BY device, format
  QUALIFY row_number() OVER (PARTITION BY device ORDER BY sum(ports) DESC, format) = 1
)
SELECT device, ts_before, ts, seconds, ports, tx_bytes
FROM by_source SEMI JOIN best USING (device, format)
ORDER BY device, ts
