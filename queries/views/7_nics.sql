-- Every name of a NIC (RDMA device, its port, net device), and the leaf port it is cabled to. A net
-- device that counts goes by its own name where no log joins it to an RDMA device (`named` is false).
CREATE OR REPLACE VIEW nic_ends AS
SELECT n.host, n.nic, n.name, n.named, c.far_owner AS leaf, c.far_part AS leaf_port
FROM (
  SELECT host, nic, name, true AS named FROM nic_names
  UNION ALL
  SELECT DISTINCT t.host, p.port, p.port, false
  FROM counting_ports p JOIN training_hosts t ON t.host = host_name(p.device)
  ANTI JOIN nic_names k ON k.host = t.host AND k.name = p.port
  WHERE regexp_full_match(p.port, '(en|eth|hsn|roce|rdma|mlx|bnxt|ionic|gpu|be)[a-z]*[0-9]\w*')
) n LEFT JOIN cable_ends c ON c.owner = n.host AND c.part = n.nic;

-- The leaf port of each NIC, by the NIC's name, or by its net device where no log joins that to an RDMA
-- device (`named` is false): then the NICs of `nic_ends` without a leaf are the same, by other names.
CREATE OR REPLACE VIEW nic_ports AS
SELECT DISTINCT host, nic, leaf, leaf_port, true AS named FROM nic_ends
WHERE named AND leaf IS NOT NULL
UNION ALL
SELECT t.host, c.far_part, c.owner, c.part, false
FROM cable_ends c JOIN training_hosts t ON t.host = host_name(c.far_owner)
ANTI JOIN nic_names n ON n.host = t.host AND n.nic = c.far_part
WHERE c.far_is_nic AND NOT c.is_nic;

-- How long each port paused its neighbour and stood paused in each interval, over all priorities:
-- `tx_share`, `rx_share` of the time (null where only frames are counted), and frames a second.
-- Of several sources of one port the one with durations is taken, then the more frequent one.
CREATE OR REPLACE VIEW pause_intervals AS
WITH by_port AS (
  SELECT format, device, port, ts_before, ts, any_value(seconds) AS seconds,
    sum(pfc_tx_frames) / any_value(seconds) AS tx_frames_per_second,
    sum(pfc_rx_frames) / any_value(seconds) AS rx_frames_per_second,
    max(pfc_tx_pause_us) / any_value(seconds) / 1e6 AS tx_share,
    max(pfc_rx_pause_us) / any_value(seconds) / 1e6 AS rx_share
  FROM priority_rates
  WHERE coalesce(pfc_rx_frames, pfc_tx_frames, pfc_rx_pause_us, pfc_tx_pause_us) IS NOT NULL
  GROUP BY format, device, port, ts_before, ts
),
best AS (
  SELECT device, format FROM by_port
  GROUP BY device, format
  QUALIFY row_number() OVER (
    PARTITION BY device
    ORDER BY count(coalesce(tx_share, rx_share)) = 0, median(seconds), format
  ) = 1
)
SELECT device, port, ts_before, ts, seconds, tx_frames_per_second, rx_frames_per_second,
  tx_share, rx_share
FROM by_port SEMI JOIN best USING (device, format);

-- Packets a second that each switch port marked (ECN) in each interval, over all its queues or as the port itself
-- counts them. Of several sources of one port and interval the one that counts most is taken.
CREATE OR REPLACE VIEW mark_intervals AS
SELECT device, port, ts_before, ts, max(marked_per_second) AS marked_per_second
FROM (
  SELECT device, port, ts_before, ts, sum(ecn_marked_packets) / any_value(seconds) AS marked_per_second
  FROM priority_rates
  WHERE ecn_marked_packets IS NOT NULL AND (queue IS NOT NULL OR priority IS NULL) AND seconds > 0
  GROUP BY format, queue IS NULL, device, port, ts_before, ts
)
GROUP BY device, port, ts_before, ts;

-- Bytes each NIC received and sent in its busiest class in each interval, as it counts them itself
-- or as its leaf port's queue does (received only). NICs that one `device` counts were read at one
-- time, `ts`: they can be compared however few steps an interval holds.
CREATE OR REPLACE VIEW nic_bytes AS
WITH classes AS NOT MATERIALIZED (
  SELECT format, device, port, ts_before, ts, seconds, queue IS NOT NULL AS at_switch,
    coalesce(queue, priority::VARCHAR) AS class, rx_bytes, tx_bytes
  FROM priority_rates
  WHERE coalesce(rx_bytes, tx_bytes) IS NOT NULL AND NOT coalesce(gap, false)
),
busiest AS (
  SELECT format, class FROM classes GROUP BY format, class
  QUALIFY row_number() OVER (
    PARTITION BY format ORDER BY sum(coalesce(tx_bytes, rx_bytes)) DESC, class
  ) = 1
),
counted AS (
  SELECT format, device, port, ts_before, ts, seconds, rx_bytes, tx_bytes, at_switch
  FROM classes SEMI JOIN busiest USING (format, class)
  UNION ALL
  SELECT format, device, port, ts_before, ts, seconds, rx_bytes, tx_bytes, false
  FROM port_rates
  WHERE coalesce(rx_bytes, tx_bytes) IS NOT NULL AND NOT coalesce(gap, false)
    AND format NOT IN (SELECT format FROM busiest)
),
-- What counts for a NIC: its leaf port, and what its host calls it.
counting AS (
  SELECT 'switch' AS seen_at, leaf AS device, leaf_port AS port, host, nic, leaf, leaf_port
  FROM nic_ports
  UNION ALL
  SELECT 'nic', p.device, p.port, n.host, n.nic, n.leaf, n.leaf_port
  FROM counting_ports p JOIN nic_ends n ON n.host = host_name(p.device) AND n.name = p.port
)
SELECT n.seen_at, c.format, n.host, n.nic, n.leaf AS switch, n.leaf_port AS port, c.device,
  c.ts_before, c.ts, c.seconds,
  -- What the switch sends is what the NIC receives.
  CASE WHEN n.seen_at = 'switch' THEN c.tx_bytes ELSE c.rx_bytes END AS received,
  CASE WHEN n.seen_at = 'nic' THEN c.tx_bytes WHEN NOT c.at_switch THEN c.rx_bytes END AS sent
FROM counted c JOIN counting n USING (device, port);
