-- question: Which PCIe devices trained narrower or slower than they could, on how many hosts?
WITH hosts AS (
  SELECT host_name(device) AS host FROM files WHERE formats LIKE '%kernel_log%' AND device IS NOT NULL
  UNION SELECT host_name(host) FROM events WHERE kind IN ('link_up', 'link_down', 'pcie_degraded')
),
limits AS (
  SELECT host_name(host) AS host, part, max(text) AS text FROM events
  WHERE kind = 'pcie_degraded' AND host IS NOT NULL GROUP BY host_name(host), part
)
SELECT host, part, text, count(*) OVER (PARTITION BY part) AS limited,
  (SELECT count(*) FROM hosts) AS hosts
FROM limits ORDER BY host, part
