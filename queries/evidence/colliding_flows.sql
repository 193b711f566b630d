-- question: Which groups of parallel links carry most through the same few of them, over the whole time?
-- A row is an uplink group. `busiest` is its busiest link over the mean, `used` counts the links that carry
-- the mean or more. `persistence` is the spread (CV^2) of the links' loads over all intervals by that in single
-- ones: 1 where the same links stay busy, as under a static hash. `busy` is the share of the time in which the
-- busiest link would be busy at its full rate, `burst` the same while the busiest job transfers. `alike` counts the
-- switches with groups of as many links. Intervals below a quarter of the usual traffic are before and after the job.
WITH transfers AS (
  SELECT max(share) AS share FROM (
    SELECT median(transfer_ms / step_time_ms) AS share FROM evidence.job_steps
    WHERE transfer_ms IS NOT NULL AND step_time_ms > 0 GROUP BY job
  ) WHERE share > 0
),
intervals AS (
  FROM evidence.uplink_windows WHERE NOT inferred
  QUALIFY sent >= 0.25 * median(sent) OVER (PARTITION BY uplink_group)
),
link_loads AS (
  SELECT uplink_group, port, sum(load) AS load
  FROM (SELECT uplink_group, unnest(ports) AS port, unnest(loads) AS load FROM intervals)
  GROUP BY uplink_group, port
),
pooled AS (
  SELECT uplink_group, count(*) AS links, max(load) / avg(load) AS busiest, arg_max(port, load) AS port,
    var_pop(load) / avg(load) ^ 2 AS spread, list(load) AS loads
  FROM link_loads GROUP BY uplink_group
),
single AS (
  SELECT device, uplink_group, min(ts_before) AS ts_before, max(ts) AS ts, count(*) AS intervals,
    avg(list_var_pop(loads) / list_avg(loads) ^ 2) AS spread,
    sum(tx_gbps * seconds) / sum(seconds) / max(capacity_gbps) AS mean_use
  FROM intervals GROUP BY device, uplink_group
)
SELECT s.device AS switch, s.uplink_group, p.port AS hot_port, s.ts_before, s.ts, s.intervals, p.links, p.busiest, len(list_filter(p.loads, lambda load: load >= list_avg(p.loads))) AS used,
  p.spread / nullif(s.spread, 0) AS persistence, p.busiest * s.mean_use AS busy,
  p.busiest * s.mean_use / t.share AS burst, f.flows,
  [{'type': 'port', 'switch': s.device, 'port': p.port}] AS related,
  count(DISTINCT s.device) OVER (PARTITION BY p.links) AS alike
FROM single s JOIN pooled p USING (uplink_group)
LEFT JOIN evidence.crossing_flows f USING (device)
LEFT JOIN transfers t ON true
ORDER BY p.busiest DESC, s.device
