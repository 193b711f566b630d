-- question: What did NCCL choose on each host, and which settings differ between hosts?
-- columns:
--   job                  job
--   host                 host
--   ranks                processes that log
--   version              NCCL version
--   network              network in use: IB, Socket, a plugin's name
--   coll_channels        channels for collectives of the job's largest communicator
--   p2p_channels         channels for send and receive
--   transports           transports of its connections
--   algorithms           algorithms of its collectives, where they were measured
--   protocols            protocols of its collectives
--   differing_settings   variables that are not the same on all hosts, as set on this one
-- lines:
--   nccl_channels   network = 'Socket'
-- example: fabricobs query what_nccl_chose
--
-- Several values in one cell mean that the processes of the host disagree. NCCL logs a variable only
-- where it is set and read: `unset` can also mean that the host's log was cut.
WITH places AS (
  SELECT job, host FROM nccl_ranks WHERE host IS NOT NULL
  UNION
  SELECT job, host FROM nccl_env WHERE host IS NOT NULL
  UNION
  SELECT job, host FROM nccl_channels WHERE host IS NOT NULL
  UNION
  SELECT job, host FROM collectives WHERE host IS NOT NULL
),
chosen AS (
  SELECT job, host, count(DISTINCT pid) AS ranks,
    string_agg(DISTINCT version, ', ' ORDER BY version) AS version,
    string_agg(DISTINCT network, ', ' ORDER BY network) AS network,
    string_agg(DISTINCT coll_channels::VARCHAR, ', ' ORDER BY coll_channels::VARCHAR)
      AS coll_channels,
    string_agg(DISTINCT p2p_channels::VARCHAR, ', ' ORDER BY p2p_channels::VARCHAR) AS p2p_channels
  FROM (SELECT * FROM ranks QUALIFY nranks = max(nranks) OVER (PARTITION BY job))
  GROUP BY job, host
),
connected AS (
  SELECT job, host, string_agg(DISTINCT transport, ', ' ORDER BY transport) AS transports
  FROM nccl_channels
  GROUP BY job, host
),
called AS (
  SELECT job, host, string_agg(DISTINCT algorithm, ', ' ORDER BY algorithm) AS algorithms,
    string_agg(DISTINCT protocol, ', ' ORDER BY protocol) AS protocols
  FROM collectives
  GROUP BY job, host
),
set_values AS (
  SELECT job, host, name, string_agg(DISTINCT value, ' | ' ORDER BY value) AS value
  FROM nccl_env
  WHERE name IS NOT NULL
  GROUP BY job, host, name
),
differing AS (
  SELECT v.job, v.name
  FROM set_values v
  JOIN (SELECT job, count(*) AS hosts FROM places GROUP BY job) p
    ON p.job IS NOT DISTINCT FROM v.job
  GROUP BY v.job, v.name
  HAVING count(DISTINCT v.value) > 1 OR count(v.host) < any_value(p.hosts)
),
settings AS (
  SELECT p.job, p.host,
    string_agg(d.name || coalesce('=' || v.value, ' unset'), '; ' ORDER BY d.name) AS differing
  FROM places p
  JOIN differing d ON d.job IS NOT DISTINCT FROM p.job
  LEFT JOIN set_values v ON v.job IS NOT DISTINCT FROM p.job AND v.host = p.host AND v.name = d.name
  GROUP BY p.job, p.host
)
SELECT p.job, p.host, coalesce(c.ranks, 0) AS ranks, c.version, c.network, c.coll_channels,
  c.p2p_channels, n.transports, a.algorithms, a.protocols, s.differing AS differing_settings
FROM places p
LEFT JOIN chosen c ON c.job IS NOT DISTINCT FROM p.job AND c.host = p.host
LEFT JOIN connected n ON n.job IS NOT DISTINCT FROM p.job AND n.host = p.host
LEFT JOIN called a ON a.job IS NOT DISTINCT FROM p.job AND a.host = p.host
LEFT JOIN settings s ON s.job IS NOT DISTINCT FROM p.job AND s.host = p.host
ORDER BY p.job, p.host;
