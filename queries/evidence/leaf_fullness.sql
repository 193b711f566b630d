-- question: How full and how even were the uplinks of each leaf, from the job's begin to each moment?
-- `burst` is their mean utilisation over the share of the step in which the busiest job transfers,
-- `imbalance` the busiest uplink over the mean less 1; `whole_` and the same over the whole run.
-- `ratio` is the rate of the NICs below over that of the uplinks; `could_be_full` counts the leaves of which it
-- is above `$ratio` or not known, two at least where there are two. `leaves_needed` is how many leaves hold the
-- hosts of the largest job, each as many as the fullest. Intervals below a quarter of the usual traffic are before
-- and after the job, and so is a part of the first.
WITH busy AS (
  SELECT w.* FROM evidence.uplink_windows w SEMI JOIN leaf_capacity c USING (uplink_group)
  WHERE w.tx_gbps IS NOT NULL AND w.capacity_gbps IS NOT NULL
  QUALIFY w.sent >= 0.25 * median(w.sent) OVER (PARTITION BY w.uplink_group)
),
windows AS (
  SELECT * FROM busy
  QUALIFY row_number() OVER (PARTITION BY uplink_group ORDER BY ts) > 1
),
carried AS (
  SELECT *, load < 0.01 * mean AND max(load / nullif(mean, 0)) OVER (PARTITION BY uplink_group, port) >= 0.25 AS is_lost
  FROM (
    SELECT *, avg(load) OVER (PARTITION BY uplink_group, ts) AS mean
    FROM (SELECT uplink_group, ts, unnest(ports) AS port, unnest(loads) AS load FROM windows)
  )
),
-- While a link that carries its part at other times carries nothing, the others have its load: the leaf is not
-- narrow for that.
shared AS (
  SELECT uplink_group, ts, port,
    CASE WHEN is_lost THEN mean ELSE load * (1 - avg(is_lost::INT) OVER (PARTITION BY uplink_group, ts)) END AS load
  FROM carried
),
loads AS (
  SELECT uplink_group, ts, sum(load) OVER (PARTITION BY uplink_group, port ORDER BY ts) AS load FROM shared
),
evenness AS (
  SELECT uplink_group, ts, max(load) / avg(load) - 1 AS imbalance FROM loads GROUP BY ALL
),
summed AS (
  SELECT w.uplink_group, w.ts_before, w.ts, e.imbalance,
    sum(w.tx_gbps * w.seconds) OVER g / sum(w.seconds) OVER g
      / max(w.capacity_gbps) OVER (PARTITION BY w.uplink_group) / t.share AS burst
  FROM windows w JOIN evenness e USING (uplink_group, ts) CROSS JOIN evidence.transfer_share t
  WINDOW g AS (PARTITION BY w.uplink_group ORDER BY w.ts)
),
below AS (
  SELECT leaf AS device, list({'type': 'host', 'host': host} ORDER BY host) AS hosts
  FROM evidence.leaf_hosts GROUP BY leaf
),
needed AS (
  SELECT ceil(max(j.hosts) / (SELECT max(len(hosts)) FROM below))::BIGINT AS leaves
  FROM evidence.hosts_of_jobs j
)
SELECT c.device AS switch, s.ts_before, s.ts, s.burst, s.imbalance,
  last_value(s.burst) OVER g AS whole_burst, last_value(s.imbalance) OVER g AS whole_imbalance,
  count(s.ts) OVER g AS intervals_known, c.ratio, c.nic_gbps, c.uplink_gbps, b.hosts AS related,
  a.leaves AS all_leaves, greatest(a.narrow, least(a.leaves, 2)) AS could_be_full,
  n.leaves AS leaves_needed
FROM leaf_capacity c
LEFT JOIN summed s USING (uplink_group)
LEFT JOIN below b USING (device)
CROSS JOIN (
  SELECT count(*) AS leaves, count(*) FILTER (coalesce(ratio, $ratio) >= $ratio) AS narrow
  FROM leaf_capacity
) a
CROSS JOIN needed n
WINDOW g AS (
  PARTITION BY c.uplink_group ORDER BY s.ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
)
ORDER BY c.device, s.ts
