-- question: Which links run or ran below what they could, below their siblings, or below what they ran at else?
-- columns:
--   device        switch or host that tells it
--   port          port
--   other_end     other end of the cable, where known
--   speed_gbps    its rate, Gb/s
--   usual_gbps    most frequent rate of the device's ports to ends of the same kind, Gb/s
--   lanes         lanes in use, where the tool tells them
--   could_be      what the tool says the link could run at
--   ts            when it was told last, UTC
--   since         when it was told first, UTC
--   until         when the port was first told to run faster again, UTC; empty: it was not
-- lines:
--   port_status   speed_gbps IS NOT NULL OR lanes IS NOT NULL
-- example: fabricobs query degraded_links
--
-- The latest statement about each port that is not down, and each earlier rate below a later one. Siblings are the
-- ports of one device whose other ends are called alike but for digits (gpu01, gpu02); fewer than three have no
-- usual rate.
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
told AS (
  SELECT device, port, speed_gbps, lanes, could_be, oper, coalesce(ts, '1970-01-01'::TIMESTAMP) AS moment, ts
  FROM named_status
  WHERE device IS NOT NULL AND port IS NOT NULL
),
latest AS (
  SELECT device, port,
    -- One statement whole: no hint beside a later rate means that the hint no longer holds.
    arg_max({'speed_gbps': speed_gbps, 'lanes': lanes, 'could_be': could_be}, (moment, could_be IS NOT NULL))
      FILTER (speed_gbps IS NOT NULL OR could_be IS NOT NULL) AS rate,
    arg_max(oper, moment) AS oper, max(ts) AS ts
  FROM told
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
),
-- Each rate a port ran at, and when it was first told to run faster after that.
rates AS (
  SELECT r.*, (
    SELECT min(f.ts) FROM told f
    WHERE f.device = r.device AND f.port = r.port AND f.speed_gbps > r.speed_gbps AND f.ts > r.ts
  ) AS until
  FROM (
    SELECT device, port, speed_gbps, any_value(lanes) AS lanes, min(ts) AS since, max(ts) AS ts
    FROM told WHERE oper IS DISTINCT FROM 'down' GROUP BY device, port, speed_gbps
  ) r
)
SELECT p.device, p.port, p.other_end, p.speed_gbps, CASE WHEN p.siblings >= 3 THEN p.usual_gbps END AS usual_gbps,
  p.lanes, p.could_be, p.ts, r.since, NULL::TIMESTAMP AS until
FROM ports p
LEFT JOIN rates r ON r.device = p.device AND r.port = p.port AND r.speed_gbps IS NOT DISTINCT FROM p.speed_gbps
WHERE p.could_be IS NOT NULL OR (p.siblings >= 3 AND p.speed_gbps < p.usual_gbps)
UNION ALL
SELECT r.device, r.port, p.other_end, r.speed_gbps, CASE WHEN p.siblings >= 3 THEN p.usual_gbps END,
  r.lanes, NULL, r.ts, r.since, r.until
FROM rates r JOIN ports p USING (device, port)
WHERE r.speed_gbps < p.speed_gbps AND r.until IS NOT NULL
ORDER BY device, port, since;
