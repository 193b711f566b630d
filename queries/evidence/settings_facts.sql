-- question: Which versions, settings and sizes does each rank or host run with?
-- Columns as in gpudirect_facts. Variables that differ from host to host by nature are left out; one
-- that a host does not print is unset there only if the host prints others.
WITH members AS (
  SELECT w.job, w.rank, w.host, w.pid, any_value(r.version) AS version,
    max(r.coll_channels) AS coll_channels, max(r.p2p_channels) AS p2p_channels
  FROM job_ranks w
  JOIN ranks r ON r.job IS NOT DISTINCT FROM w.job AND r.host = w.host AND r.pid = w.pid
  GROUP BY w.job, w.rank, w.host, w.pid
),
-- Reductions in the NVSwitch (NVLS) and in the network (CollNet, SHARP): what each process has, and asked for. From
-- 2.20 on NCCL prints as many channels of CollNet as of all collectives, whether or not it has any: a warning tells.
refused AS (
  SELECT DISTINCT job, host_name(host) AS host, pid FROM nccl_events
  WHERE kind = 'sharp' AND level = 'WARN' AND text LIKE 'using point-to-point%'
),
reductions AS (
  SELECT w.job, w.rank, w.host, max(n.nvls_channels) AS nvls, max(n.collnet_channels) AS collnet,
    CASE WHEN bool_or(f.pid IS NOT NULL) THEN 0 ELSE max(n.collnet_channels) END AS given_collnet,
    max(n.local_ranks) AS local_ranks
  FROM job_ranks w
  JOIN nccl_ranks n ON n.job IS NOT DISTINCT FROM w.job AND host_name(n.host) = w.host AND n.pid = w.pid
  LEFT JOIN refused f ON f.job IS NOT DISTINCT FROM w.job AND f.host = w.host AND f.pid = w.pid
  GROUP BY w.job, w.rank, w.host
),
-- GPUs whose hosts have no NVLS leave it out without a word.
without_nvls AS (
  SELECT DISTINCT host_name(host) AS host FROM gpu_samples
  WHERE model IS NOT NULL AND NOT regexp_matches(model, (SELECT any_value(gpu) FROM nccl_algorithm_needs WHERE algorithm = 'NVLS'))
),
requests AS (
  SELECT DISTINCT job, host_name(host) AS host, CASE WHEN name = 'NCCL_COLLNET_ENABLE' THEN 'CollNet' ELSE 'NVLS' END AS what
  FROM nccl_env
  WHERE (name = 'NCCL_COLLNET_ENABLE' AND value = '1')
    OR (name = 'NCCL_NVLS_ENABLE' AND value = '1' AND host_name(host) NOT IN (FROM without_nvls))
    OR (name = 'NCCL_ALGO' AND upper(value) IN ('NVLS', 'NVLSTREE'))
),
variables AS (
  SELECT DISTINCT job, host_name(host) AS host, name, value
  FROM nccl_env
  WHERE name IS NOT NULL AND host IS NOT NULL AND NOT regexp_matches(name, 'FILE|HOSTID|COMM_ID|DUMP|PORT')
),
asked AS (
  SELECT v.job, v.host, n.name
  FROM (SELECT DISTINCT job, host FROM variables) v
  JOIN (SELECT DISTINCT job, name FROM variables) n ON n.job IS NOT DISTINCT FROM v.job
),
mtus AS (
  SELECT j.job, j.host, s.port, max(s.mtu) AS mtu
  FROM (SELECT DISTINCT job, host FROM job_ranks) j
  JOIN named_status s ON host_name(s.device) = j.host
  WHERE s.mtu IS NOT NULL
  GROUP BY ALL
)
SELECT job, host, rank, fact, NULL::VARCHAR AS part, value, NULL::BOOLEAN AS bad, true AS decides
FROM (
  SELECT job, host, rank, 'NCCL version' AS fact, version AS value FROM members
  UNION ALL
  SELECT job, host, rank, 'channels for collectives', coll_channels::VARCHAR FROM members
  UNION ALL
  SELECT job, host, rank, 'channels for send and receive', p2p_channels::VARCHAR FROM members
  UNION ALL
  SELECT job, host, rank, 'channels of NVLS', nvls::VARCHAR FROM reductions
  UNION ALL
  SELECT job, host, rank, 'channels of CollNet', collnet::VARCHAR FROM reductions
)
WHERE value IS NOT NULL
UNION ALL
SELECT q.job, q.host, q.rank, q.what, NULL,
  CASE WHEN q.given > 0 THEN 'given' ELSE 'asked for and not given' END, q.given = 0, true
FROM (
  SELECT q.*, r.rank, CASE q.what WHEN 'NVLS' THEN r.nvls ELSE r.given_collnet END AS given
  FROM requests q JOIN reductions r ON r.job IS NOT DISTINCT FROM q.job AND r.host = q.host
  -- One GPU alone has nobody to reduce with in the NVSwitch.
  WHERE q.what <> 'NVLS' OR r.local_ranks IS NULL OR r.local_ranks > 1
) q
WHERE q.given IS NOT NULL
UNION ALL
SELECT j.job, j.host, NULL, 'NVLS multicast', NULL, string_agg(DISTINCT h.value, ' | ' ORDER BY h.value), NULL, true
FROM (SELECT DISTINCT job, host FROM job_ranks) j
JOIN hosts h ON host_name(h.host) = j.host AND h.fact = 'nvls'
GROUP BY j.job, j.host
UNION ALL
SELECT a.job, a.host, NULL, a.name, NULL, coalesce(v.value, 'unset'), NULL, true
FROM asked a
LEFT JOIN (
  SELECT job, host, name, string_agg(value, ' | ' ORDER BY value) AS value
  FROM variables GROUP BY job, host, name
) v ON v.job IS NOT DISTINCT FROM a.job AND v.host = a.host AND v.name = a.name
UNION ALL
SELECT job, host, NULL, 'MTU of', port, mtu::VARCHAR, NULL, true FROM mtus
UNION ALL
SELECT j.job, j.host, NULL, 'CUDA driver', NULL, any_value(h.value), NULL, true
FROM (SELECT DISTINCT job, host FROM job_ranks) j
JOIN hosts h ON host_name(h.host) = j.host AND h.fact = 'cuda_driver_version'
GROUP BY j.job, j.host
UNION ALL
SELECT c.job, host_name(c.host), NULL, 'algorithm and protocol of',
  c.op || ' of ' || c.bytes || ' bytes over ' || c.nranks || ' ranks',
  string_agg(DISTINCT concat_ws(' ', c.algorithm, c.protocol), ', '), NULL, true
FROM collectives c
WHERE c.algorithm IS NOT NULL AND c.host IS NOT NULL AND c.bytes IS NOT NULL
GROUP BY c.job, host_name(c.host), c.op, c.bytes, c.nranks
