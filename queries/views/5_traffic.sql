-- A view that is named twice is bound twice, with all views below it: `WITH nics AS (FROM uncabled_nics)` names it once.

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

-- What each port of a device that is no host sent and received a second, over the whole time: by bytes
-- where a source counts them.
CREATE OR REPLACE VIEW switch_port_totals AS
SELECT device, port, tx_bytes IS NOT NULL AS in_bytes,
  sum(coalesce(tx_bytes, tx_packets)) / sum(seconds) AS sent,
  sum(coalesce(rx_bytes, rx_packets)) / sum(seconds) AS received
FROM port_traffic
WHERE coalesce(tx_bytes, tx_packets) IS NOT NULL AND coalesce(rx_bytes, rx_packets) IS NOT NULL
  AND host_name(device) NOT IN (FROM known_hosts)
  AND device NOT IN (SELECT device FROM device_names WHERE nic IS NOT NULL)
GROUP BY device, port, in_bytes
QUALIFY row_number() OVER (PARTITION BY device, port ORDER BY in_bytes DESC) = 1;

-- What each NIC of a host sent and received a second, over the whole time, where no cable of a NIC is told. A NIC
-- that carries a tenth of the host's busiest or less is no NIC of the job.
CREATE OR REPLACE VIEW uncabled_nics AS
SELECT host, nic, sent, received FROM (
  SELECT host_name(t.device) AS host, coalesce(n.nic, t.port) AS nic, t.port, t.format,
    sum(t.tx_bytes) / sum(t.seconds) AS sent, sum(t.rx_bytes) / sum(t.seconds) AS received
  FROM port_traffic t LEFT JOIN nic_names n ON n.host = host_name(t.device) AND n.name = t.port
  WHERE t.tx_bytes IS NOT NULL AND t.rx_bytes IS NOT NULL AND host_name(t.device) IN (SELECT host FROM training_hosts)
    AND NOT EXISTS (FROM cable_ends WHERE far_is_nic AND NOT is_nic)
  GROUP BY host_name(t.device), coalesce(n.nic, t.port), t.port, t.format
)
QUALIFY row_number() OVER (PARTITION BY host, nic ORDER BY port, format) = 1
  AND sent + received > 0.1 * max(sent + received) OVER (PARTITION BY host);

-- Ports of switches that lead to NICs: as cables tell; where nobody tells a cable of a NIC, those that count what
-- some NIC does, if there are as many as NICs. Rates over the whole time agree within 2 %, for two devices are not
-- read at one moment, and headers are up to 6 % more. Where rings cross uplinks, these may carry what a NIC does,
-- too: then the ports that are ten times as near to a NIC as all others.
CREATE OR REPLACE VIEW ports_to_nics AS
WITH nics AS (
  FROM uncabled_nics
),
like_nics AS (
  SELECT p.device, p.port, min(greatest(abs(ln(p.received / n.sent)), abs(ln(p.sent / n.received)))) AS distance
  FROM switch_port_totals p JOIN nics n
    ON p.received BETWEEN 0.98 * n.sent AND 1.08 * n.sent AND p.sent BETWEEN 0.98 * n.received AND 1.08 * n.received
  WHERE p.in_bytes AND least(p.sent, p.received, n.sent, n.received) > 0
  GROUP BY p.device, p.port
),
nearest AS (
  SELECT *, row_number() OVER near AS place, lead(distance) OVER near AS next
  FROM like_nics WINDOW near AS (ORDER BY distance, device, port)
)
SELECT owner AS device, part AS port FROM cable_ends WHERE far_is_nic AND NOT is_nic
UNION ALL
SELECT device, port FROM nearest
WHERE place <= (SELECT count(*) FROM nics)
  AND EXISTS (FROM nearest WHERE place = (SELECT count(*) FROM nics) AND (next IS NULL OR next > 10 * distance));

-- Uplinks that no log tells, of leaves of which the ports to NICs are known: all other ports of the leaf that count
-- anything, if each of them sends what a port of a switch without hosts receives, and the other way round,
-- and there are as many of these. Rates over the whole time agree within 2 %, and within a thousandth of the leaf's
-- busiest port, which is LLDP. Where one of them matches none, some may lead to hosts without logs: nothing is said
-- of the leaf.
CREATE OR REPLACE VIEW counted_uplinks AS
WITH alive AS (
  SELECT *, 0.001 * max(greatest(sent, received)) OVER (PARTITION BY device) AS idle
  FROM switch_port_totals WHERE sent + received > 0
),
below AS (
  FROM ports_to_nics
),
near AS (
  SELECT a.* FROM alive a
  SEMI JOIN below d ON d.device = a.device
  ANTI JOIN below b ON b.device = a.device AND b.port = a.port
  ANTI JOIN uplink_groups g ON g.device = a.device
),
far AS (
  SELECT * FROM alive a ANTI JOIN below b ON b.device = a.device
),
matched AS (
  SELECT n.device, n.port, f.device AS far_device, f.port AS far_port
  FROM near n LEFT JOIN far f ON f.in_bytes = n.in_bytes
    AND abs(n.sent - f.received) <= 0.02 * n.sent + n.idle
    AND abs(n.received - f.sent) <= 0.02 * n.received + n.idle
)
SELECT device, port FROM matched
GROUP BY device, port
QUALIFY bool_and(bool_or(far_port IS NOT NULL)) OVER (PARTITION BY device)
  AND (SELECT count(DISTINCT (device, port)) FROM matched WHERE far_port IS NOT NULL)
    <= (SELECT count(DISTINCT (far_device, far_port)) FROM matched);

-- Parallel links: the uplink groups that cables or counters tell, and where no log tells a cable of a switch,
-- its ports of one kind of name and one speed that receive alike over the whole time (`inferred`):
-- in order of what they receive, a group ends where the next port receives twice as much. Ports
-- without traffic both ways are unused. A device of more than 16 ports is no host (NICs of the
-- largest hosts); with fewer than 4 ports alike nothing is inferred.
CREATE OR REPLACE VIEW parallel_ports AS
WITH used AS (
  SELECT r.*, s.speed_gbps, regexp_replace(r.port, '\d+', '#', 'g') AS family
  FROM switch_port_totals r LEFT JOIN told_speeds s USING (device, port)
  WHERE NOT EXISTS (SELECT 1 FROM canonical_links l WHERE r.device IN (l.device, l.remote_device))
  QUALIFY count(*) OVER (PARTITION BY r.device) > 16
    AND greatest(sent, received) > 0.001 * max(greatest(sent, received)) OVER (PARTITION BY r.device)
),
steps AS (
  SELECT *, received > 2 * lag(received) OVER w AS is_new FROM used
  WINDOW w AS (PARTITION BY device, family, speed_gbps, in_bytes ORDER BY received)
),
alike AS (
  SELECT *, count(*) FILTER (is_new) OVER (
    PARTITION BY device, family, speed_gbps, in_bytes ORDER BY received
  ) AS part
  FROM steps
),
inferred AS (
  SELECT device, port, speed_gbps, count(*) OVER w AS members,
    device || ' ports like ' || first_value(port) OVER (w ORDER BY length(port), port) AS uplink_group
  FROM alike
  WINDOW w AS (PARTITION BY device, family, speed_gbps, in_bytes, part)
),
counted AS (
  FROM counted_uplinks
)
SELECT device, port, speed_gbps, uplink_group, members, false AS inferred FROM uplink_groups
UNION ALL
SELECT device, port, s.speed_gbps, device || ' uplinks', count(*) OVER (PARTITION BY device), false
FROM counted LEFT JOIN told_speeds s USING (device, port)
UNION ALL
SELECT device, port, speed_gbps, uplink_group, members, true FROM inferred
WHERE members >= 4 AND device NOT IN (SELECT device FROM counted);

-- Ports of parallel links in every interval, from the one source that counts most: bytes before
-- packets. `window_us` is what intervals are summed to (see uplink_port_windows), 0: they stand.
CREATE OR REPLACE VIEW uplink_ports AS
WITH
-- A number for every port by one of its names: to hold the names in every row takes twice the memory.
members AS MATERIALIZED (
  SELECT row_number() OVER () AS member, g.*, n.name
  FROM (
    SELECT t.device, t.port AS name, coalesce(a.port, t.port) AS port
    FROM counting_ports t
    LEFT JOIN port_aliases a ON a.device = host_name(t.device) AND a.name = t.port
  ) n JOIN parallel_ports g USING (device, port)
),
counted AS (
  SELECT t.* EXCLUDE (device, port), m.member, t.tx_bytes IS NULL AS in_packets
  FROM port_traffic t JOIN members m ON m.device = t.device AND m.name = t.port
  WHERE coalesce(t.tx_bytes, t.tx_packets) IS NOT NULL
),
-- Few rows are put in order here: to rank the intervals themselves took twice the time of all the rest.
sources AS (
  SELECT job, member, format, in_packets
  FROM (SELECT DISTINCT job, member, format, in_packets FROM counted) JOIN members USING (member)
  QUALIFY dense_rank() OVER (PARTITION BY job, device, port ORDER BY in_packets, format) = 1
),
chosen AS (
  SELECT c.* FROM counted c JOIN sources s
    ON s.job IS NOT DISTINCT FROM c.job AND s.member = c.member
    AND s.format = c.format AND s.in_packets = c.in_packets
),
polling AS (
  SELECT job, uplink_group, median(seconds) AS seconds,
    -- Ports of one snapshot share its time; read one by one, each has times of its own.
    count(DISTINCT ts) > 1.5 * count(*) / count(DISTINCT port) AS asynchronous
  FROM chosen JOIN members USING (member) GROUP BY job, uplink_group
),
-- By itself: joined with the intervals before their members are, every group would meet all of a job.
told AS MATERIALIZED (
  SELECT p.job, m.*, (1e6 * CASE
    WHEN p.asynchronous THEN greatest(60, 2 * ceil(p.seconds)) WHEN p.seconds < 10 THEN 10 ELSE 0
  END)::BIGINT AS window_us
  FROM members m JOIN polling p USING (uplink_group)
)
SELECT c.* EXCLUDE (member, in_packets), t.device, t.port, t.uplink_group, t.members, t.speed_gbps, t.inferred,
  coalesce(c.tx_bytes, c.tx_packets) AS sent, coalesce(c.rx_bytes, c.rx_packets) AS received, t.window_us
FROM chosen c JOIN told t ON t.job IS NOT DISTINCT FROM c.job AND t.member = c.member;

-- What each port of parallel links sent, in windows that can be compared between ports: the interval
-- itself where all ports of a group were read at one moment, summed to 10 s where that is shorter
-- (balance within a step of the job means nothing), else to a minute, or two intervals if longer.
CREATE OR REPLACE VIEW uplink_port_windows AS
SELECT job, device, uplink_group, members, inferred, port, any_value(speed_gbps) AS speed_gbps,
  min(ts_before) AS ts_before, window_end AS ts, sum(seconds) AS seconds, bool_or(gap) AS gap,
  sum(sent) AS sent, sum(tx_bytes) AS tx_bytes, sum(received) AS received
FROM (
  SELECT *, CASE WHEN window_us = 0 THEN ts
    ELSE make_timestamp(((epoch_us(ts) - 1) // window_us + 1) * window_us) END AS window_end
  FROM uplink_ports
)
GROUP BY job, device, uplink_group, members, inferred, port, window_end;

-- The balance of every group of parallel links in every window, by bytes sent (packets where no source
-- counts bytes). `imbalance` is max/mean - 1, `jain` is 1 for even and 1/n for one link alone,
-- `top_half_share` is the share of the busier half of the links. What ports received tells of inferred groups alone
-- whether they are parallel links.
CREATE OR REPLACE VIEW uplink_intervals AS
WITH chosen AS (
  SELECT *, (count(*) OVER g + 1) // 2 AS half,
    -- A rate known of some members only would weigh them against the others.
    CASE WHEN count(speed_gbps) OVER g = count(*) OVER g THEN speed_gbps ELSE 1 END AS weight,
    -- Windows of ports that are read one by one hold more of one than of the other.
    max(seconds) OVER g / seconds AS longer
  FROM uplink_port_windows
  WINDOW g AS (PARTITION BY job, uplink_group, ts)
),
shares AS (
  SELECT job, device, uplink_group, members, inferred, port, ts_before, ts, seconds, speed_gbps, gap,
    sent, tx_bytes, CASE WHEN inferred THEN received END AS received, half,
    longer * sent / nullif(weight, 0) AS load,
    rank() OVER (PARTITION BY job, uplink_group, ts ORDER BY sent DESC, port) AS place
  FROM chosen
)
SELECT job, device, uplink_group, min(ts_before) AS ts_before, ts, max(seconds) AS seconds, bool_or(gap) AS gap,
  count(*) AS links, any_value(members) AS members, any_value(inferred) AS inferred,
  sum(tx_bytes) AS tx_bytes, sum(sent) AS sent,
  8e-9 * sum(tx_bytes) / max(seconds) AS tx_gbps,
  sum(speed_gbps) AS capacity_gbps,
  max(load) / nullif(avg(load), 0) - 1 AS imbalance,
  sum(load) ^ 2 / nullif(count(*) * sum(load ^ 2), 0) AS jain,
  sum(load) FILTER (place <= half) / nullif(sum(load), 0) AS top_half_share,
  list(port ORDER BY port) AS ports,
  list(load ORDER BY port) AS loads,
  list(received ORDER BY port) AS receipts
FROM shares
GROUP BY job, device, uplink_group, ts;

-- What the NICs below each leaf can send and what its uplinks can, Gb/s; `ratio` is null unless the rate of every port is
-- known.
CREATE OR REPLACE VIEW leaf_capacity AS
WITH below AS (
  SELECT device, count(*) AS nics, CASE WHEN count(speed_gbps) = count(*) THEN sum(speed_gbps) END AS nic_gbps
  FROM ports_to_nics LEFT JOIN told_speeds USING (device, port)
  GROUP BY device
),
above AS (
  SELECT device, uplink_group, any_value(members) AS uplinks,
    CASE WHEN count(speed_gbps) = count(*) THEN sum(speed_gbps) END AS uplink_gbps
  FROM parallel_ports WHERE NOT inferred GROUP BY device, uplink_group
)
SELECT a.device, a.uplink_group, b.nics, b.nic_gbps, a.uplinks, a.uplink_gbps,
  b.nic_gbps / a.uplink_gbps AS ratio
FROM above a JOIN below b USING (device);
