-- question: Does the collective between hosts that a job spends most time in reach what its NICs allow?
-- A row is a job. `best_gbytes_per_s` is what the fastest 5 % of its calls reach, `low_gbytes_per_s` what sound
-- sites reach at least. Jobs whose hosts also run others, and those of unknown NICs, have none. `reasons` lists
-- what the logs tell that would explain it, the likeliest first. `narrow` is how many times less the uplinks of a leaf
-- carry than its NICs, at least 1: that much less is as the fabric is built.
WITH variables AS (
  SELECT job, string_agg(DISTINCT name || '=' || value, ', ' ORDER BY name || '=' || value) AS named
  FROM nccl_env
  WHERE name IN ('NCCL_PROTO', 'NCCL_ALGO', 'NCCL_MAX_NCHANNELS', 'NCCL_NCHANNELS_PER_NET_PEER', 'NCCL_IB_DISABLE',
    'NCCL_NET_GDR_LEVEL', 'NCCL_P2P_DISABLE', 'NCCL_SHM_DISABLE', 'NCCL_CROSS_NIC', 'NCCL_BUFFSIZE', 'NCCL_NTHREADS')
  GROUP BY job
),
facts AS (
  SELECT job, bool_or(network = 'Socket') AS sockets, bool_or(NOT gdr) AS no_gdr
  FROM evidence.nccl_choice GROUP BY job
),
-- Of k flows a link on average, the busiest of n links carries about k + sqrt(2 k ln n): twice its share or more
-- where k is below 2 ln n (Raab and Steger, "Balls into bins", 1998).
few_flows AS (
  SELECT max(format('{} flows cross {} over {} uplinks: a hash of so few makes the busiest carry twice its share or more',
    f.flows, device, c.uplinks)) AS reason
  FROM evidence.crossing_flows f
  JOIN leaf_capacity c USING (device)
  WHERE f.flows > 0 AND c.uplinks > 1 AND f.flows < 2 * ln(c.uplinks) * c.uplinks
)
SELECT m.job, m.op, m.nranks, m.nodes, m.bytes, m.calls,
  m.busbw_p95_gbytes_per_s AS best_gbytes_per_s, m.expected_low_gbytes_per_s AS low_gbytes_per_s,
  m.expected_high_gbytes_per_s AS high_gbytes_per_s, m.limit_gbytes_per_s,
  m.link_gbytes_per_s * 8 AS link_gbps, m.nics, m.expected_source,
  greatest(coalesce(u.ratio, 1), 1) AS narrow, u.ratio IS NOT NULL AS uplinks_known,
  list_filter([
    CASE WHEN f.sockets THEN 'NCCL uses sockets, not RDMA' END,
    CASE WHEN f.no_gdr THEN 'GPUDirect RDMA is off' END,
    CASE WHEN u.ratio > 1.05 THEN format('leaves have {:.1f} times less uplink than NIC capacity', u.ratio) END,
    few_flows.reason,
    'variables in force: ' || v.named
  ], lambda reason: reason IS NOT NULL) AS reasons
FROM job_bandwidths m
LEFT JOIN variables v ON v.job IS NOT DISTINCT FROM m.job
LEFT JOIN facts f ON f.job IS NOT DISTINCT FROM m.job
CROSS JOIN evidence.narrow_leaves u
CROSS JOIN few_flows
ORDER BY m.job
