-- Bytes and packets of every port between two samples, whichever source counts them. A SONiC
-- switch counts packets by port and bytes by queue; a queue's bytes are sent bytes only.
CREATE OR REPLACE VIEW port_traffic AS
SELECT job, device, port, format, ts_before, ts, seconds, gap,
  rx_bytes, tx_bytes, rx_packets, tx_packets
FROM port_rates
WHERE coalesce(rx_bytes, tx_bytes, rx_packets, tx_packets) IS NOT NULL
UNION ALL
SELECT job, device, port, format, ts_before, ts, seconds, bool_or(gap),
  NULL, sum(tx_bytes), NULL, sum(tx_packets)
FROM priority_rates
WHERE queue IS NOT NULL
GROUP BY job, device, port, format, ts_before, ts, seconds;

-- Ports of uplink groups in every interval, from the one source that counts most: bytes before
-- packets. `often` says that samples of the group are closer than 30 s.
CREATE OR REPLACE VIEW uplink_ports AS
WITH ranked AS (
  SELECT t.*, g.uplink_group, g.members, g.speed_gbps,
    coalesce(t.tx_bytes, t.tx_packets) AS sent,
    dense_rank() OVER (
      PARTITION BY t.job, t.device, t.port ORDER BY t.tx_bytes IS NULL, t.format
    ) AS preference
  FROM (
    SELECT t.* REPLACE (coalesce(a.port, t.port) AS port)
    FROM port_traffic t
    LEFT JOIN port_aliases a ON a.device = host_name(t.device) AND a.name = t.port
  ) t JOIN uplink_groups g USING (device, port)
  WHERE coalesce(t.tx_bytes, t.tx_packets) IS NOT NULL
)
SELECT *, median(seconds) OVER (PARTITION BY job, uplink_group) < 30 AS often
FROM ranked WHERE preference = 1;

-- The balance of every uplink group in every interval, by bytes sent (packets where no source
-- counts bytes). `imbalance` is max/mean - 1, `jain` is 1 for even and 1/n for one link alone,
-- `top_half_share` is the share of the busier half of the links.
CREATE OR REPLACE VIEW uplink_intervals AS
WITH
-- Ports of one snapshot share its time. Samples closer than 30 s are often taken port by port, and
-- balance within seconds means nothing: they are summed to minutes.
windows AS (
  SELECT job, device, uplink_group, members, port, any_value(speed_gbps) AS speed_gbps,
    min(ts_before) AS ts_before,
    CASE WHEN often THEN time_bucket(INTERVAL 60 SECONDS, ts) + INTERVAL 60 SECONDS ELSE ts END AS ts,
    sum(seconds) AS seconds, bool_or(gap) AS gap, sum(sent) AS sent, sum(tx_bytes) AS tx_bytes
  FROM uplink_ports
  GROUP BY job, device, uplink_group, members, port,
    CASE WHEN often THEN time_bucket(INTERVAL 60 SECONDS, ts) + INTERVAL 60 SECONDS ELSE ts END
),
chosen AS (
  SELECT *, (count(*) OVER g + 1) // 2 AS half,
    -- A rate known of some members only would weigh them against the others.
    CASE WHEN count(speed_gbps) OVER g = count(*) OVER g THEN speed_gbps ELSE 1 END AS weight
  FROM windows
  WINDOW g AS (PARTITION BY job, uplink_group, ts)
),
shares AS (
  SELECT job, device, uplink_group, members, port, ts_before, ts, seconds, speed_gbps, gap,
    sent, tx_bytes, half,
    sent / nullif(weight, 0) AS load,
    rank() OVER (PARTITION BY job, uplink_group, ts ORDER BY sent DESC, port) AS place
  FROM chosen
)
SELECT job, device, uplink_group, min(ts_before) AS ts_before, ts, max(seconds) AS seconds, bool_or(gap) AS gap,
  count(*) AS links, any_value(members) AS members,
  sum(tx_bytes) AS tx_bytes, sum(sent) AS sent,
  8e-9 * sum(tx_bytes) / max(seconds) AS tx_gbps,
  sum(speed_gbps) AS capacity_gbps,
  max(load) / nullif(avg(load), 0) - 1 AS imbalance,
  sum(load) ^ 2 / nullif(count(*) * sum(load ^ 2), 0) AS jain,
  sum(load) FILTER (place <= half) / nullif(sum(load), 0) AS top_half_share,
  list(port ORDER BY port) AS ports,
  list(load ORDER BY port) AS loads
FROM shares
GROUP BY job, device, uplink_group, ts;

-- The same of single intervals, where all ports of a group were read at one moment: balance over
-- some seconds tells nothing of the usual, but much of what no hash can do.
CREATE OR REPLACE VIEW uplink_snapshots AS
WITH weighed AS (
  SELECT *,
    CASE WHEN count(speed_gbps) OVER g = count(*) OVER g THEN speed_gbps ELSE 1 END AS weight
  FROM uplink_ports
  WINDOW g AS (PARTITION BY job, uplink_group, ts_before, ts)
)
SELECT job, device, uplink_group, ts_before, ts, any_value(seconds) AS seconds, bool_or(gap) AS gap,
  any_value(members) AS members, sum(sent) AS sent,
  8e-9 * sum(tx_bytes) / any_value(seconds) AS tx_gbps,
  sum(speed_gbps) AS capacity_gbps,
  list(port ORDER BY port) AS ports,
  list(sent / nullif(weight, 0) ORDER BY port) AS loads
FROM weighed
GROUP BY job, device, uplink_group, ts_before, ts
HAVING count(*) = any_value(members) AND count(*) >= 2;
