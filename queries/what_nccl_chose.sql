-- question: What did NCCL choose on each host and for its communicators, and which settings differ between hosts?
-- columns:
--   job                  job
--   host                 host
--   nranks               ranks of the communicators of this row
--   nodes                hosts of each of them
--   communicators        how many of that size the host is in
--   ranks                processes that log
--   version              NCCL version
--   network              network in use: IB, Socket, a plugin's name
--   coll_channels        channels for collectives
--   p2p_channels         channels for send and receive
--   nvls_channels        channels for reductions in the NVSwitch
--   collnet_channels     channels for reductions in the network, as printed: from 2.20 on that of coll_channels
--   transports           transports of the host's connections
--   algorithms           algorithms of their collectives, where they were measured
--   protocols            protocols of their collectives
--   differing_settings   variables that are not the same on all hosts, as set on this one
-- lines:
--   nccl_channels   network = 'Socket'
-- example: fabricobs query what_nccl_chose
--
-- A row is a host and the communicators of one size, the largest first. Several values in one cell mean that its
-- processes disagree. NCCL logs a variable only where it is set and read: `unset` can also mean that the host's log was
-- cut. What each algorithm needs, and whether it is used, is in `nccl_algorithms`.
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
  SELECT job, host, nranks, nodes, count(DISTINCT communicator) AS communicators, count(DISTINCT pid) AS ranks,
    string_agg(DISTINCT version, ', ' ORDER BY version) AS version,
    string_agg(DISTINCT network, ', ' ORDER BY network) AS network,
    string_agg(DISTINCT coll_channels::VARCHAR, ', ' ORDER BY coll_channels::VARCHAR) AS coll_channels,
    string_agg(DISTINCT p2p_channels::VARCHAR, ', ' ORDER BY p2p_channels::VARCHAR) AS p2p_channels,
    string_agg(DISTINCT nvls_channels::VARCHAR, ', ' ORDER BY nvls_channels::VARCHAR) AS nvls_channels,
    string_agg(DISTINCT collnet_channels::VARCHAR, ', ' ORDER BY collnet_channels::VARCHAR) AS collnet_channels
  FROM communicator_ranks
  GROUP BY job, host, nranks, nodes
),
connected AS (
  SELECT job, host, string_agg(DISTINCT transport, ', ' ORDER BY transport) AS transports
  FROM nccl_channels
  GROUP BY job, host
),
-- Of collectives that do not tell the size of their communicator, all communicators of the host are meant.
called AS (
  SELECT job, host, nranks, string_agg(DISTINCT algorithm, ', ' ORDER BY algorithm) AS algorithms,
    string_agg(DISTINCT protocol, ', ' ORDER BY protocol) AS protocols
  FROM collectives
  GROUP BY job, host, nranks
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
SELECT p.job, p.host, c.nranks, c.nodes, coalesce(c.communicators, 0) AS communicators, coalesce(c.ranks, 0) AS ranks,
  c.version, c.network, c.coll_channels, c.p2p_channels, c.nvls_channels, c.collnet_channels, n.transports,
  string_agg(DISTINCT a.algorithms, ', ' ORDER BY a.algorithms) AS algorithms,
  string_agg(DISTINCT a.protocols, ', ' ORDER BY a.protocols) AS protocols, s.differing AS differing_settings
FROM places p
LEFT JOIN chosen c ON c.job IS NOT DISTINCT FROM p.job AND c.host = p.host
LEFT JOIN connected n ON n.job IS NOT DISTINCT FROM p.job AND n.host = p.host
LEFT JOIN called a ON a.job IS NOT DISTINCT FROM p.job AND a.host = p.host AND coalesce(a.nranks = c.nranks, true)
LEFT JOIN settings s ON s.job IS NOT DISTINCT FROM p.job AND s.host = p.host
GROUP BY ALL
ORDER BY p.job, p.host, c.nranks DESC, c.nodes DESC;
