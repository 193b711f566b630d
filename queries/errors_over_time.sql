-- question: When did each port count errors, drops or retransmissions, and how many others did?
-- columns:
--   job                 job the counters were ingested for
--   window_start        begin of the window, UTC
--   device              switch, or host for a NIC
--   port                port; the NIC where counters of a host name its port or net device
--   counter             counter that rose; fabricobs schema explains it
--   risen               rise in the window, in the counter's unit
--   risen_per_second    the same over the time its rise is known, 1/s
--   ports_with_rise     ports on which this counter rose in the window
--   ports               ports that have this counter
--   other_end           other end of the cable, where LLDP or discovery tells it
--   source              format the counter was read from; of several the one that saw most
-- lines:
--   port_samples   true
--   events         kind IN ('link_down', 'port_down', 'nic_error')
-- example: fabricobs query errors_over_time
--
-- The time of the counters is cut into 30 windows, none shorter than 30 s; an interval belongs to the
-- window it ends in. Counters that never rise are left out. Totals are in ports_with_rising_errors.
WITH totals AS (
  SELECT e.job, p.owner, p.part, e.counter, e.format, sum(e.risen) AS risen
  FROM error_rises e JOIN port_parts p USING (device, port)
  GROUP BY ALL
),
known AS (
  SELECT job, counter, count(DISTINCT (owner, part)) AS ports FROM totals GROUP BY job, counter
),
sources AS (
  SELECT * FROM totals WHERE risen > 0
  QUALIFY row_number() OVER (PARTITION BY job, owner, part, counter ORDER BY risen DESC, format) = 1
),
span AS (
  SELECT min(ts_before) AS begin, window_seconds(min(ts_before), max(ts)) AS seconds
  FROM error_rises
),
windows AS (
  SELECT e.job, window_of(e.ts, n.begin, n.seconds) AS window_start,
    s.owner AS device, s.part AS port, e.counter, sum(e.risen)::BIGINT AS risen,
    sum(e.risen) / sum(e.seconds) FILTER (e.risen IS NOT NULL) AS risen_per_second,
    e.format AS source
  FROM span n, error_rises e
  JOIN port_parts p USING (device, port)
  JOIN sources s ON s.job IS NOT DISTINCT FROM e.job AND s.owner = p.owner AND s.part = p.part
    AND s.counter = e.counter AND s.format = e.format
  GROUP BY ALL
)
SELECT w.job, w.window_start, w.device, w.port, w.counter, w.risen, w.risen_per_second,
  count(*) FILTER (w.risen > 0) OVER (PARTITION BY w.job, w.counter, w.window_start) AS ports_with_rise,
  k.ports, c.far_owner || ' ' || c.far_part AS other_end, w.source
FROM windows w
JOIN known k ON k.job IS NOT DISTINCT FROM w.job AND k.counter = w.counter
LEFT JOIN cable_ends c ON c.owner = w.device AND c.part = w.port
ORDER BY w.job, w.window_start, w.risen DESC, w.device, w.port, w.counter;
