-- question: Which ports count errors, drops or retransmissions, and since when?
-- columns:
--   job                   job the counters were ingested for
--   device                switch, or host for a NIC
--   port                  port
--   counter               counter that rose; fabricobs schema explains it
--   risen                 rise over all intervals, in the counter's unit
--   intervals_with_rise   intervals in which it rose
--   intervals             intervals in which its rise is known
--   first_seen            end of the first interval with a rise, UTC
--   last_seen             end of the last one, UTC
--   risen_per_hour        mean rate over the known time, 1/h
--   other_end             other end of the cable, where LLDP or discovery tells it
--   source                format the counter was read from
-- example: fabricobs query ports_with_rising_errors
--
-- Rises only: a total from before the run that stands still is no sign of a fault. Nothing listed
-- means that no known counter rose, not that every port has counters: see what_was_ingested.
WITH totals AS (
  SELECT job, device, port, format, counter, sum(risen)::BIGINT AS risen,
    count(*) FILTER (risen > 0) AS intervals_with_rise,
    count(*) AS intervals,
    min(ts) FILTER (risen > 0) AS first_seen,
    max(ts) FILTER (risen > 0) AS last_seen,
    sum(risen) / sum(seconds) * 3600 AS risen_per_hour
  FROM error_rises
  GROUP BY job, device, port, format, counter
  HAVING sum(risen) > 0
)
SELECT t.job, t.device, t.port, t.counter, t.risen, t.intervals_with_rise, t.intervals,
  t.first_seen, t.last_seen, t.risen_per_hour,
  c.far_owner || ' ' || c.far_part AS other_end, t.format AS source
FROM totals t
LEFT JOIN port_parts p USING (device, port)
LEFT JOIN cable_ends c ON c.owner = p.owner AND c.part = p.part
ORDER BY t.risen DESC, t.job, t.device, t.port, t.counter, t.format;
