-- question: Which algorithms could NCCL use, which are asked for or left out, and which does it use?
-- columns:
--   job          job
--   nranks       ranks of the communicators of this row
--   nodes        hosts of each of them; null: not told
--   hosts        hosts that are in one
--   algorithm    Ring, Tree, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT or Symmetric
--   possible     whether release, hosts, ranks a host and GPUs allow it: yes, no and why, or unknown
--   variables    variables that leave it out or ask for it
--   given        whether NCCL set it up: yes, no, or unknown
--   calls        collectives that used it; null: no log tells algorithms
--   verdict      used, available, not chosen, off by a variable, asked for and not given, not possible, not set up, unknown
--   source       where the limits are from
-- example: fabricobs query nccl_algorithms
--
-- Communicators of one size are one row. Algorithms of collectives are told by NCCL Inspector, and by NCCL_DEBUG_SUBSYS=TUNING,
-- which does not tell of which communicator: there one of all ranks of the job is meant. Numbers of channels of CollNet
-- count where they are not that of all collectives, which newer releases print instead. Whether switches have SHARP is
-- known where NCCL lists NICs with it. What a tuner plugin decides is not known.
WITH sizes AS (
  -- More hosts than one tell that it spans several, where NCCL does not print how many.
  SELECT c.job, c.nranks, coalesce(c.nodes, nullif(count(DISTINCT c.host), 1)) AS nodes, count(DISTINCT c.host) AS hosts, max(c.local_ranks) AS local_ranks,
    max(try_cast(regexp_extract(c.version, '^2\.(\d+)', 1) AS INT)) AS minor,
    max(c.nvls_channels) AS nvls, max(c.coll_channels) AS coll,
    max(c.collnet_channels) FILTER (c.collnet_channels <> c.coll_channels OR c.collnet_channels = 0) AS collnet
  FROM communicator_ranks c WHERE c.nranks > 1
  GROUP BY c.job, c.nranks, c.nodes
),
set_values AS (
  SELECT job, map_from_entries(list({'name': name, 'value': value} ORDER BY name)) AS v
  FROM (
    SELECT job, name, any_value(regexp_replace(value, '\.$', '')) AS value FROM nccl_env
    WHERE name LIKE 'NCCL_%' AND value IS NOT NULL GROUP BY job, name HAVING count(DISTINCT value) = 1
  ) GROUP BY job
),
facts AS (
  SELECT j.job, g.gpu, s.v,
    (SELECT bool_or(h.value = 'available') FROM hosts h JOIN job_ranks r ON r.host = host_name(h.host)
      WHERE h.fact = 'nvls' AND r.job IS NOT DISTINCT FROM j.job) AS multicast,
    EXISTS (FROM nccl_channels n WHERE n.transport = 'COLLNET' AND n.job IS NOT DISTINCT FROM j.job) AS has_collnet,
    EXISTS (FROM nccl_nics n WHERE n.sharp AND n.job IS NOT DISTINCT FROM j.job) AS has_sharp,
    EXISTS (FROM hosts h JOIN job_ranks r ON r.host = host_name(h.host)
      WHERE h.fact = 'nccl_symmetric_memory' AND r.job IS NOT DISTINCT FROM j.job) AS no_symmetric,
    EXISTS (FROM nccl_events e WHERE e.kind = 'sharp' AND e.text LIKE 'using point-to-point%' AND e.job IS NOT DISTINCT FROM j.job) AS no_collnet
  FROM (SELECT DISTINCT job FROM sizes) j
  LEFT JOIN job_gpus g ON g.job IS NOT DISTINCT FROM j.job
  LEFT JOIN set_values s ON s.job IS NOT DISTINCT FROM j.job
),
called AS (
  SELECT job, nranks, algorithm, count(*) AS calls FROM collectives WHERE algorithm IS NOT NULL GROUP BY ALL
  UNION ALL
  SELECT c.job, coalesce(c.nranks, l.nranks), c.algorithm, count(*) FROM nccl_calls c
  LEFT JOIN (SELECT job, max(nranks) AS nranks FROM sizes GROUP BY job) l ON l.job IS NOT DISTINCT FROM c.job
  WHERE c.algorithm IS NOT NULL GROUP BY ALL
),
known AS (
  SELECT z.*, n.* EXCLUDE (gpu, source), n.source, n.gpu AS gpus, f.gpu, f.v, f.multicast, f.has_collnet, f.no_collnet, f.has_sharp, f.no_symmetric,
    coalesce(f.v['NCCL_ALGO'], '') AS asked,
    CASE WHEN c.told THEN coalesce(c.calls, 0) END AS calls
  FROM sizes z
  CROSS JOIN nccl_algorithm_needs n
  JOIN facts f ON f.job IS NOT DISTINCT FROM z.job
  LEFT JOIN LATERAL (
    SELECT count(*) > 0 AS told, sum(calls) FILTER (lower(algorithm) = lower(n.algorithm)) AS calls
    FROM called k WHERE k.job IS NOT DISTINCT FROM z.job AND k.nranks = z.nranks
  ) c ON true
),
judged AS (
  SELECT *,
    CASE WHEN minor < since THEN format('no: since 2.{}', since)
      WHEN nodes < fewest_nodes THEN 'no: one host' WHEN algorithm = 'Symmetric' AND nodes > 1 AND NOT EXISTS (FROM nccl_ranks r WHERE r.mnnvl AND r.job IS NOT DISTINCT FROM known.job) THEN 'no: several hosts'
      WHEN algorithm = 'NVLS' AND nodes > 1 AND NOT has_collnet THEN 'no: several hosts without CollNet'
      WHEN local_ranks < fewest_local THEN 'no: one rank a host' WHEN local_ranks > most_local THEN format('no: {} ranks a host', local_ranks)
      WHEN gpus IS NOT NULL AND nvls > 0 THEN 'yes'
      WHEN gpus IS NOT NULL AND gpu IS NOT NULL AND NOT regexp_matches(gpu, gpus) THEN 'no: ' || gpu
      WHEN gpus IS NOT NULL AND NOT multicast THEN 'no: no multicast in the NVSwitch'
      WHEN algorithm LIKE 'CollNet%' AND NOT has_collnet AND NOT has_sharp THEN 'unknown'
      WHEN minor IS NULL OR (nodes IS NULL AND coalesce(fewest_nodes, most_nodes) IS NOT NULL) OR (gpus IS NOT NULL AND gpu IS NULL AND multicast IS NULL)
        OR (local_ranks IS NULL AND coalesce(fewest_local, most_local) IS NOT NULL) THEN 'unknown'
      ELSE 'yes' END AS possible,
    CASE WHEN algorithm IN ('NVLS', 'NVLSTree') AND v['NCCL_NVLS_ENABLE'] = '0' THEN 'off by NCCL_NVLS_ENABLE=0'
      WHEN starts_with(asked, '^') AND list_contains(string_split(lower(asked[2:]), ','), lower(algorithm)) THEN 'off by NCCL_ALGO=' || asked
      WHEN len(asked_in(asked)) > 0 AND NOT contains(asked, ':') AND algorithm <> 'Symmetric' AND NOT list_contains(asked_in(asked), lower(algorithm)) THEN 'off by NCCL_ALGO=' || asked
      WHEN list_contains(asked_in(asked), lower(algorithm)) THEN 'asked for by NCCL_ALGO=' || asked
      WHEN v[variable] = '1' THEN format('asked for by {}=1', variable)
      WHEN algorithm IN ('NVLS', 'NVLSTree') AND v['NCCL_NVLS_ENABLE'] = '1' THEN 'asked for by NCCL_NVLS_ENABLE=1' END AS variables,
    CASE WHEN algorithm LIKE 'NVLS%' THEN CASE WHEN nvls > 0 THEN 'yes' WHEN nvls = 0 THEN 'no' ELSE 'unknown' END
      WHEN algorithm LIKE 'CollNet%' THEN CASE WHEN no_collnet OR collnet = 0 THEN 'no' WHEN has_collnet OR collnet > 0 THEN 'yes' ELSE 'unknown' END
      WHEN algorithm = 'Symmetric' AND no_symmetric THEN 'no'
      WHEN algorithm IN ('Ring', 'Tree') AND coll > 0 THEN 'yes' ELSE 'unknown' END AS given
  FROM known
)
SELECT job, nranks, nodes, hosts, algorithm, possible, variables, given, calls,
  CASE WHEN calls > 0 THEN 'used' WHEN variables LIKE 'off by%' THEN 'off by a variable'
    WHEN variables LIKE 'asked%' AND given = 'no' THEN 'asked for and not given'
    WHEN possible LIKE 'no%' THEN 'not possible'
    WHEN given = 'yes' AND calls = 0 THEN 'not chosen' WHEN given = 'yes' THEN 'available'
    WHEN given = 'no' AND possible = 'yes' THEN 'not set up' ELSE 'unknown' END AS verdict,
  source
FROM judged
ORDER BY job, nranks DESC, nodes DESC, since, algorithm;
