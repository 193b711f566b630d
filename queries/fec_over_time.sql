-- question: How much did FEC correct at each port, and what could it not?
-- columns:
--   job                      job the counters were ingested for
--   window_start             begin of the window, UTC
--   device                   switch, or host for a NIC
--   port                     port; the NIC where counters of a host name its port or net device
--   corrected                corrected in the window, in `unit`
--   unit                     bits, or codewords that held a wrong bit, as the source counts them
--   corrected_per_second     the same over the time it is known, 1/s
--   usual_per_second         median of the ports of this source and unit in the window, 1/s
--   uncorrected              code words lost: FEC could not correct them
--   other_end                other end of the cable, where LLDP or discovery tells it
--   source                   format the counter was read from; of several the one that saw most
-- counters: fec_corrected, fec_uncorrected
-- example: fabricobs query fec_over_time
--
-- The time of the counters is cut into 30 windows, none shorter than 30 s; an interval belongs to the
-- window it ends in. Ports whose FEC never corrected are left out.
WITH rises AS (
  SELECT r.job, coalesce(p.owner, r.device) AS device, coalesce(p.part, r.port) AS port, r.format AS source,
    r.ts_before, r.ts, r.seconds, r.fec_corrected, r.fec_uncorrected
  FROM port_rates r LEFT JOIN port_parts p USING (device, port)
  WHERE r.fec_corrected IS NOT NULL AND r.seconds > 0
),
best AS (
  SELECT job, device, port, source FROM rises GROUP BY job, device, port, source HAVING sum(fec_corrected) > 0
  QUALIFY row_number() OVER (PARTITION BY job, device, port ORDER BY sum(fec_corrected) DESC, source) = 1
),
span AS (
  SELECT min(ts_before) AS begin, window_seconds(min(ts_before), max(ts)) AS seconds
  FROM rises
),
windows AS (
  SELECT job, window_of(r.ts, n.begin, n.seconds) AS window_start,
    device, port, source, sum(r.fec_corrected) AS corrected, sum(r.fec_corrected) / sum(r.seconds) AS corrected_per_second,
    sum(r.fec_uncorrected) AS uncorrected
  FROM span n, rises r SEMI JOIN best b
    ON b.job IS NOT DISTINCT FROM r.job AND b.device = r.device AND b.port = r.port AND b.source = r.source
  GROUP BY ALL
),
units AS (
  SELECT DISTINCT format, unit FROM counter_info WHERE table_name = 'port_samples' AND counter = 'fec_corrected'
)
SELECT w.job, w.window_start, w.device, w.port, w.corrected::BIGINT AS corrected, coalesce(u.unit, 'bits') AS unit,
  w.corrected_per_second,
  median(w.corrected_per_second) OVER (PARTITION BY w.job, w.window_start, w.source) AS usual_per_second,
  w.uncorrected::BIGINT AS uncorrected, c.far_owner || ' ' || c.far_part AS other_end, w.source
FROM windows w
LEFT JOIN units u ON u.format = w.source
LEFT JOIN cable_ends c ON c.owner = w.device AND c.part = w.port
ORDER BY w.job, w.window_start, w.corrected_per_second DESC, w.device, w.port;
