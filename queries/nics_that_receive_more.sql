-- question: Which NICs receive more than they send, or more than the NICs read with them?
-- columns:
--   host            host
--   nic             RDMA device
--   switch          leaf it is cabled to; null if unknown
--   port            port of the leaf
--   received_gbps   received in the busiest class, Gb/s
--   sent_gbps       sent in it, Gb/s; null where no source counts it
--   over_sent       received over sent; a ring keeps it at 1
--   over_peers      received over the median of the NICs of the same snapshots; 1 in a ring
--   intervals       intervals with counters
-- counters: rx_bytes, tx_bytes
-- example: fabricobs query nics_that_receive_more
--
-- The NICs' own counters come first, the queues of their leaf ports where those are not there.
WITH compared AS (
  SELECT *, median(received) OVER (PARTITION BY format, device, ts) AS usual
  FROM nic_bytes
),
sums AS (
  SELECT host, nic, format, any_value(switch) AS switch, any_value(port) AS port,
    8e-9 * sum(received) / sum(seconds) AS received_gbps, 8e-9 * sum(sent) / sum(seconds) AS sent_gbps,
    sum(received) / nullif(sum(sent), 0) AS over_sent,
    sum(received) / nullif(sum(usual), 0) AS over_peers,
    count(*) AS intervals
  FROM compared
  GROUP BY host, nic, format
  QUALIFY row_number() OVER (
    PARTITION BY host, nic ORDER BY sent_gbps IS NULL, count(*) DESC, format
  ) = 1
)
SELECT host, nic, switch, port, received_gbps, sent_gbps, over_sent, over_peers, intervals
FROM sums
ORDER BY greatest(over_sent, over_peers) DESC NULLS LAST, host, nic;
