-- question: How many of the bits on its line did FEC correct at each port, in each interval?
-- FEC works on all code words, idle ones too: the rate is of the bits that the line's speed makes. Some devices
-- count code words, of which at most all are corrected, however many bits are wrong: of those `ber` is the rate at
-- which so large a share of words holds a wrong bit. `allowed` is what the code of the lane's speed is specified for.
-- `alike` says that most ports of the source are beyond that, this one by less than `$odd` times what is usual of them.
WITH rises AS (
  SELECT coalesce(p.owner, r.device) AS owner, coalesce(p.part, r.port) AS part,
    coalesce(p.is_nic, false) AS is_nic, r.format, r.ts_before, r.ts, r.seconds, r.fec_corrected,
    sum(r.fec_corrected) OVER (PARTITION BY p.owner, p.part, r.format) AS seen
  FROM port_rates r LEFT JOIN port_parts p USING (device, port)
  WHERE r.fec_corrected > 0 AND r.seconds > 0
),
best AS (
  SELECT * FROM rises QUALIFY dense_rank() OVER (PARTITION BY owner, part ORDER BY seen DESC, format) = 1
),
lanes AS (
  SELECT coalesce(p.owner, s.device) AS owner, coalesce(p.part, s.port) AS part,
    max(s.speed_gbps / s.lanes) AS lane_gbps
  FROM named_status s LEFT JOIN port_parts p USING (device, port)
  WHERE s.lanes > 0 AND s.speed_gbps > 0 GROUP BY ALL
),
counted AS (
  SELECT b.*, s.far_owner, s.far_part, coalesce(l.lane_gbps < 30, false) AS slow,
    -- RS(528,514) and RS(544,514), of symbols of 10 bits
    CASE WHEN slow THEN 5280 ELSE 5440 END AS word_bits, b.fec_corrected / (s.speed_gbps * 1e9 * b.seconds) AS of_bits,
    coalesce(i.unit = 'codewords', false) AND of_bits * word_bits < 1 AS words
  FROM best b
  JOIN evidence.port_speeds s USING (owner, part)
  LEFT JOIN lanes l USING (owner, part)
  LEFT JOIN (
    SELECT DISTINCT format, unit FROM counter_info WHERE table_name = 'port_samples' AND counter = 'fec_corrected'
  ) i USING (format)
  WHERE s.speed_gbps > 0
),
rates AS (
  SELECT *, CASE WHEN words THEN -ln(1 - of_bits * word_bits) / word_bits ELSE of_bits END AS ber,
    CASE WHEN slow THEN $ber_slow ELSE $ber END AS allowed
  FROM counted
),
ports AS (
  SELECT owner, part, format, median(ber) AS usual_ber, median(ber) >= any_value(allowed) AS beyond
  FROM rates GROUP BY owner, part, format
),
common AS (
  SELECT format, median(usual_ber) FILTER (beyond) AS usual, count(*) FILTER (beyond) AS broken, count(*) AS ports
  FROM ports GROUP BY format HAVING broken >= greatest($fewest, $most * count(*))
)
SELECT CASE WHEN is_nic THEN 'nic' ELSE 'port' END AS type,
  CASE WHEN is_nic THEN owner END AS host, CASE WHEN is_nic THEN part END AS nic,
  CASE WHEN NOT is_nic THEN owner END AS switch, CASE WHEN NOT is_nic THEN part END AS port,
  owner || ' ' || part AS near, far_owner || ' ' || far_part AS far, format, ts_before, ts, ber, allowed,
  c.broken, c.ports, coalesce(p.usual_ber < $odd * c.usual, false) AS alike
FROM rates r
JOIN ports p USING (owner, part, format)
LEFT JOIN common c USING (format)
ORDER BY owner, part, ts
