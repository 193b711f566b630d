-- question: How evenly do the uplinks of each switch share the load, in windows of 2 minutes?
-- columns:
--   job              job the counters were ingested for
--   uplink_group     equal-cost links of one switch
--   window_start     begin of the window, UTC
--   port             link
--   share            its share of what the group sent, by load over link rate
--   even_share       share if all links were alike
--   ratio            share over even_share; 1 is even
--   links            links counted
--   members          links the group has
--   tx_gbps          sent by the group, Gb/s; null where no source counts bytes
--   utilisation      tx_gbps over the group's capacity, over the whole window: bursts of a job come higher
--   imbalance        busiest link over the mean, minus 1; 0 is even
--   jain             Jain's fairness index: 1 is even, 1/links is one link alone
--   top_half_share   share of the busier half of the links; 0.5 is even
-- counters: tx_bytes, tx_packets
-- example: fabricobs query uplink_balance
--
-- Bytes are summed over the window first, so busy intervals weigh more. An interval belongs to the
-- window it ends in; one in which a link has no sample is left out. Links are told by `links`
-- (LLDP, discovery); without them there is no group. The links furthest from even come first.
WITH whole AS (
  SELECT * FROM uplink_intervals
  WHERE sent > 0 AND links > 1
  QUALIFY links = max(links) OVER (PARTITION BY job, uplink_group)
),
windows AS (
  SELECT job, uplink_group, time_bucket(INTERVAL 2 MINUTE, ts) AS window_start,
    max(members) AS members,
    8e-9 * sum(tx_bytes) / sum(seconds) AS tx_gbps,
    max(capacity_gbps) AS capacity_gbps
  FROM whole
  GROUP BY ALL
),
one_by_one AS (
  SELECT job, uplink_group, ts, unnest(ports) AS port, unnest(loads) AS load FROM whole
),
sums AS (
  SELECT job, uplink_group, time_bucket(INTERVAL 2 MINUTE, ts) AS window_start, port,
    sum(load) AS load
  FROM one_by_one
  GROUP BY ALL
),
placed AS (
  SELECT *, count(*) OVER w AS links,
    row_number() OVER (
      PARTITION BY job, uplink_group, window_start ORDER BY load DESC, port
    ) AS place
  FROM sums
  WINDOW w AS (PARTITION BY job, uplink_group, window_start)
),
measures AS (
  SELECT job, uplink_group, window_start, sum(load) AS load,
    max(load) / nullif(avg(load), 0) - 1 AS imbalance,
    sum(load) ^ 2 / nullif(count(*) * sum(load ^ 2), 0) AS jain,
    sum(load) FILTER (place <= (links + 1) // 2) / nullif(sum(load), 0) AS top_half_share
  FROM placed
  GROUP BY job, uplink_group, window_start
)
SELECT p.job, p.uplink_group, p.window_start, p.port, round(p.load / nullif(m.load, 0), 6) AS share,
  1 / p.links AS even_share, round(p.load * p.links / nullif(m.load, 0), 6) AS ratio, p.links, w.members,
  w.tx_gbps, w.tx_gbps / nullif(w.capacity_gbps, 0) AS utilisation,
  m.imbalance, m.jain, m.top_half_share
FROM placed p
JOIN measures m ON m.job IS NOT DISTINCT FROM p.job AND m.uplink_group = p.uplink_group
  AND m.window_start = p.window_start
JOIN windows w ON w.job IS NOT DISTINCT FROM p.job AND w.uplink_group = p.uplink_group
  AND w.window_start = p.window_start
ORDER BY p.job, p.uplink_group, p.window_start, abs(ratio - 1) DESC, p.place;
