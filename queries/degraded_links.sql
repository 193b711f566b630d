-- question: Which links run below what they could, or below their siblings?
-- columns:
--   device        switch or host that tells it
--   port          port
--   other_end     other end of the cable, where known
--   speed_gbps    its rate, Gb/s
--   usual_gbps    most frequent rate of the device's ports to ends of the same kind, Gb/s
--   lanes         lanes in use, where the tool tells them
--   could_be      what the tool says the link could run at
--   ts            when it was told, UTC
-- example: fabricobs query degraded_links
--
-- The latest statement about each port that is not down. Siblings are the ports of one device whose
-- other ends are called alike but for digits (gpu01, gpu02); fewer than three have no usual rate.
WITH ends AS (
  SELECT device, port, remote_device, remote_port, ts FROM named_links
  UNION ALL
  SELECT remote_device, remote_port, device, port, ts FROM named_links WHERE remote_port IS NOT NULL
),
cables AS (
  SELECT device, port,
    arg_max(remote_device, coalesce(ts, '1970-01-01'::TIMESTAMP)) AS remote_device,
    arg_max(remote_device || coalesce(' ' || remote_port, ''), coalesce(ts, '1970-01-01'::TIMESTAMP)) AS other_end
  FROM ends
  WHERE remote_device IS NOT NULL AND port IS NOT NULL
  GROUP BY device, port
),
latest AS (
  SELECT device, port,
    -- One statement whole: no hint beside a later rate means that the hint no longer holds.
    arg_max(
      {'speed_gbps': speed_gbps, 'lanes': lanes, 'could_be': could_be},
      (coalesce(ts, '1970-01-01'::TIMESTAMP), could_be IS NOT NULL)
    ) FILTER (speed_gbps IS NOT NULL OR could_be IS NOT NULL) AS rate,
    arg_max(oper, coalesce(ts, '1970-01-01'::TIMESTAMP)) AS oper,
    max(ts) AS ts
  FROM named_status
  WHERE device IS NOT NULL AND port IS NOT NULL
  GROUP BY device, port
),
ports AS (
  SELECT l.device, l.port, l.ts, l.rate.speed_gbps, l.rate.lanes, l.rate.could_be, c.other_end,
    mode(l.rate.speed_gbps) OVER siblings AS usual_gbps,
    count(l.rate.speed_gbps) OVER siblings AS siblings
  FROM latest l LEFT JOIN cables c USING (device, port)
  WHERE l.oper IS DISTINCT FROM 'down'
  WINDOW siblings AS (
    PARTITION BY l.device, regexp_replace(c.remote_device, '[0-9]+', '#', 'g'),
      CASE WHEN c.remote_device IS NULL THEN l.port END
  )
)
SELECT device, port, other_end, speed_gbps, CASE WHEN siblings >= 3 THEN usual_gbps END AS usual_gbps,
  lanes, could_be, ts
FROM ports
WHERE could_be IS NOT NULL OR (siblings >= 3 AND speed_gbps < usual_gbps)
ORDER BY device, port;
