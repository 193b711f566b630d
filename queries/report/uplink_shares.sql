-- question: Which share of its uplink traffic did the switch $switch send through each link over time?
-- Without a switch, of any. Of several groups of links, the least even one. Intervals that carry less
-- than a quarter of the usual traffic are left out: idle links look as uneven as can be.
-- columns:
--   switch        Its name
--   uplink_group  Name of the group of equal-cost links
--   links         Links of the group
--   intervals     Counter intervals in the point
--   moment        End of the point, UTC
--   port          Port of the switch
--   share         Share of the group's traffic, by bytes (packets where bytes are not counted), 0 to 1
WITH intervals AS (
  SELECT device, uplink_group, ts, links, imbalance, ports, loads, sent,
    median(sent) OVER (PARTITION BY uplink_group) AS usual
  FROM uplink_intervals
  WHERE coalesce(device = $switch::VARCHAR, true)
    AND NOT coalesce(gap, false) AND links = members AND links >= 2 AND sent > 0
),
busy AS (
  SELECT *, avg(imbalance) OVER (PARTITION BY uplink_group) AS unevenness
  FROM intervals
  WHERE sent >= 0.25 * usual
),
least_even AS (
  SELECT * FROM busy
  QUALIFY uplink_group = first_value(uplink_group) OVER (ORDER BY unevenness DESC, uplink_group)
),
placed AS (
  SELECT device, uplink_group, ts, links, ports, loads, dense_rank() OVER (ORDER BY ts) - 1 AS place,
    greatest($most // max(links) OVER (), 1) AS points
  FROM least_even
),
binned AS (
  SELECT *, place * least(points, max(place) OVER () + 1) // (max(place) OVER () + 1) AS point
  FROM placed
),
by_port AS (
  SELECT device, uplink_group, links, ts, point, unnest(ports) AS port, unnest(loads) AS load
  FROM binned
)
SELECT any_value(device) AS switch, uplink_group, any_value(links) AS links,
  count(DISTINCT ts) AS intervals,
  max(max(ts)) OVER (PARTITION BY point) AS moment, port,
  sum(load) / nullif(sum(sum(load)) OVER (PARTITION BY point), 0) AS share
FROM by_port
GROUP BY uplink_group, point, port
ORDER BY moment, port
