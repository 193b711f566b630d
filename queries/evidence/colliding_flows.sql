-- question: When does a group of parallel links carry most through a few of them, and are they the same ones?
-- A row is an uplink group and an interval in which its busiest link carries `$busiest` times the mean. What
-- follows is of all these intervals together: `busiest` is the busiest link over the mean, `used` counts the links
-- that carry the mean or more. `persistence` is the spread (CV^2) of the links' loads by that in single intervals: 1
-- where the same links stay busy, as under a static hash. `busy` is the share of the time in which the busiest link
-- would be busy at its full rate, `burst` the same while the busiest job transfers; `nic_burst` is that of the median
-- NIC: NICs that send at their own rate wait for no link. `alike` counts the switches with
-- groups of as many links. `alternate_p` is the p that chance leaves every second link out so, in order of their
-- ports: of Mann-Whitney's z of the loads at even against odd places, of this group, or of all with as many links
-- together (Stouffer). Whatever flows there are, a hash that tells them apart places them alike. Intervals below a
-- quarter of the usual traffic are before and after the job.
WITH with_traffic AS (
  FROM evidence.uplink_windows WHERE NOT inferred
  QUALIFY sent >= 0.25 * median(sent) OVER (PARTITION BY uplink_group)
),
intervals AS (
  FROM with_traffic WHERE list_max(loads) >= $busiest * list_avg(loads)
),
sizes AS (
  SELECT len(ports) AS links, count(DISTINCT device) AS alike FROM with_traffic GROUP BY len(ports)
),
-- Kahan sums: else the order of the rows decides which of two equal links is the busiest.
link_loads AS (
  SELECT uplink_group, port, fsum(load) AS load
  FROM (SELECT uplink_group, unnest(ports) AS port, unnest(loads) AS load FROM intervals)
  GROUP BY uplink_group, port
),
by_group AS (
  SELECT uplink_group, count(*) AS links, max(load) / avg(load) AS busiest, first(port ORDER BY load DESC, port) AS port,
    var_pop(load) / avg(load) ^ 2 AS spread, list(load) AS loads, list(port ORDER BY load DESC, port) AS ports
  FROM link_loads GROUP BY uplink_group
),
pooled AS (
  SELECT *, len(list_filter(loads, lambda load: load >= list_avg(loads))) AS used FROM by_group
),
-- Ranks without replacement: their sum over a half has the variance n1 n0 / (n - 1) of the ranks' own.
ranked AS (
  SELECT uplink_group, count(*) OVER g AS links,
    (row_number() OVER (g ORDER BY regexp_extract_all(port, '\d+')::BIGINT[], port) - 1) % 2 AS odd,
    rank() OVER (g ORDER BY load) + (count(*) OVER (PARTITION BY uplink_group, load) - 1) / 2 AS place
  FROM link_loads
  WINDOW g AS (PARTITION BY uplink_group)
),
alternate AS (
  SELECT uplink_group, links, (sum(place * odd) - sum(odd) * (links + 1) / 2)
    / nullif(sqrt(sum(odd) * (links - sum(odd)) / (links - 1) * var_pop(place)), 0) AS z
  FROM ranked WHERE links >= 4 GROUP BY uplink_group, links
),
-- Each group is one of many that are tested.
chances AS (
  SELECT uplink_group, least(groups * two_sided_p(z), two_sided_p(all_z), 1) AS p
  FROM (
    SELECT uplink_group, z, count(*) OVER l AS groups, sum(z) OVER l / sqrt(count(*) OVER l) AS all_z
    FROM alternate WHERE z IS NOT NULL
    WINDOW l AS (PARTITION BY links)
  )
),
single AS (
  SELECT uplink_group,
    avg(list_var_pop(loads) / list_avg(loads) ^ 2) AS spread,
    sum(tx_gbps * seconds) / sum(seconds) / max(capacity_gbps) AS mean_use
  FROM intervals GROUP BY uplink_group
),
surplus AS (
  SELECT uplink_group, list_aggregate(w.loads, 'quantile_cont', 0.25) AS others,
    list_extract(w.loads, list_position(w.ports, p.port)) - others AS more, list_avg(w.loads) AS mean
  FROM evidence.uplink_windows w JOIN pooled p USING (uplink_group) WHERE NOT inferred
),
less AS (
  SELECT *, others <= 0.5 * median(others) OVER g AND median(others) OVER g >= 0.1 * median(mean) OVER g AS is_less
  FROM surplus WINDOW g AS (PARTITION BY uplink_group)
),
stays AS (
  SELECT uplink_group, count(*) FILTER (is_less) >= 2 AND median(more) FILTER (is_less) >= 0.5 * median(more) AS not_the_jobs
  FROM less GROUP BY uplink_group
),
nic_uses AS (
  SELECT sum(received_gbps * seconds) / sum(seconds) / max(speed_gbps) AS used
  FROM (FROM evidence.nic_rates QUALIFY received_gbps >= 0.25 * median(received_gbps) OVER (PARTITION BY host, nic))
  WHERE speed_gbps > 0 GROUP BY host, nic
),
nics AS (SELECT median(used) AS used FROM nic_uses)
SELECT i.device AS switch, uplink_group, p.port AS hot_port, i.ts_before, i.ts, p.links, p.busiest, p.used,
  p.spread / nullif(s.spread, 0) AS persistence, p.busiest * s.mean_use AS busy,
  p.busiest * s.mean_use / t.share AS burst, n.used / t.share AS nic_burst, f.flows, o.not_the_jobs, c.p AS alternate_p, a.alike,
  [{'type': 'port', 'switch': i.device, 'port': each} FOR each IN p.ports[:p.used]] AS related
FROM intervals i JOIN single s USING (uplink_group) JOIN pooled p USING (uplink_group)
LEFT JOIN evidence.crossing_flows f USING (device)
LEFT JOIN chances c USING (uplink_group)
LEFT JOIN stays o USING (uplink_group)
LEFT JOIN sizes a USING (links)
CROSS JOIN evidence.transfer_share t
CROSS JOIN nics n
ORDER BY p.busiest DESC, uplink_group, i.ts
