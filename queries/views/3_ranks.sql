-- Ranks as the NCCL logs tell them: one row a rank of a communicator, its statements merged.
CREATE OR REPLACE VIEW ranks AS
WITH told AS (
  -- A process of several GPUs says in each line of which it speaks; of lines that do not, no rank is known.
  SELECT *, CASE WHEN min(cuda_device) OVER p <> max(cuda_device) OVER p THEN cuda_device END AS device
  FROM nccl_ranks
  WINDOW p AS (PARTITION BY job, host, pid)
),
processes AS (
  SELECT job, host, pid, arg_max(network, line) AS network, arg_max(version, line) AS version
  FROM told
  WHERE host IS NOT NULL
  GROUP BY job, host, pid
),
devices AS (
  SELECT job, host, pid, device,
    bool_and(ring_gdr) AS ring_gdr,
    bool_or(ring_pxn) AS ring_pxn,
    max(coll_channels) AS coll_channels,
    max(p2p_channels) AS p2p_channels
  FROM told
  WHERE host IS NOT NULL
  GROUP BY job, host, pid, device
)
SELECT s.job, max(s.comm_id) AS comm_id, s.comm, s.rank, s.host, s.pid,
  max(s.cuda_device) AS cuda_device,
  max(s.nvml_device) AS nvml_device,
  max(s.bus_id) AS bus_id,
  max(s.nranks) AS nranks,
  max(s.nodes) AS nodes,
  max(s.local_rank) AS local_rank,
  max(s.local_ranks) AS local_ranks,
  arg_max(s.init_state, s.line) AS init_state,
  max(s.init_seconds) AS init_seconds,
  any_value(p.network) AS network,
  any_value(p.version) AS version,
  any_value(d.ring_gdr) AS ring_gdr,
  any_value(d.ring_pxn) AS ring_pxn,
  any_value(d.coll_channels) AS coll_channels,
  any_value(d.p2p_channels) AS p2p_channels
FROM told s
LEFT JOIN processes p ON s.job IS NOT DISTINCT FROM p.job AND s.host = p.host AND s.pid = p.pid
LEFT JOIN devices d ON s.job IS NOT DISTINCT FROM d.job AND s.host = d.host AND s.pid = d.pid
  AND s.device IS NOT DISTINCT FROM d.device
WHERE s.rank IS NOT NULL AND s.comm IS NOT NULL
GROUP BY s.job, s.comm, s.rank, s.host, s.pid;

-- What NCCL chose in each process, with or without a rank that is told. Sockets know no GPUDirect.
CREATE OR REPLACE VIEW nccl_processes AS
SELECT job, host, pid, network, nodes, CASE WHEN network IS DISTINCT FROM 'Socket' THEN gdr END AS gdr
FROM (
  SELECT job, host, pid, max(nodes) AS nodes,
    coalesce(arg_max(chosen, line), arg_max(connected, line)) AS network,
    coalesce(bool_and(gdr), bool_and(ring_gdr)) AS gdr
  FROM (
    SELECT job, host_name(host) AS host, pid, line, network AS chosen, ring_gdr, nodes FROM nccl_ranks
    UNION ALL BY NAME
    SELECT job, host_name(host) AS host, pid, line, network AS connected,
      -- The other end of a socket may have RDMA for all the rest.
      CASE WHEN network IS DISTINCT FROM 'Socket' THEN gdr END AS gdr
    FROM nccl_channels
    WHERE transport = 'NET'
  )
  WHERE pid IS NOT NULL
  GROUP BY job, host, pid
);

-- The ranks of each job's largest communicator: the job's own rank numbers. Without NCCL logs the
-- hosts come from what else names rank and host.
CREATE OR REPLACE VIEW job_ranks AS
WITH largest AS (
  SELECT job, rank, host, pid, coalesce(nvml_device, cuda_device) AS gpu, comm_id, nranks,
    row_number() OVER (PARTITION BY job, rank ORDER BY nranks DESC, init_state = 'complete' DESC, comm) AS place
  FROM ranks
  QUALIFY nranks = max(nranks) OVER (PARTITION BY job)
),
named AS (
  SELECT job, rank, max(host_name(host)) AS host, NULL::BIGINT AS pid, NULL::BIGINT AS gpu
  FROM (
    SELECT job, rank, host FROM steps WHERE rank IS NOT NULL AND host IS NOT NULL
    UNION
    SELECT c.job, c.rank, c.host FROM collectives c
    WHERE c.host IS NOT NULL
      AND c.nranks = (SELECT max(b.nranks) FROM collectives b WHERE b.job IS NOT DISTINCT FROM c.job)
      AND NOT EXISTS (
        SELECT 1 FROM largest l WHERE l.job IS NOT DISTINCT FROM c.job AND l.nranks > c.nranks
      )
  )
  GROUP BY job, rank
),
told AS (
  SELECT job, rank, host, pid, gpu FROM largest WHERE place = 1
  UNION ALL
  SELECT job, rank, host, pid, gpu FROM named n
  WHERE NOT EXISTS (
    SELECT 1 FROM largest l WHERE l.job IS NOT DISTINCT FROM n.job AND l.rank = n.rank
  )
),
-- The host map: ranks of a host in the order of its GPUs.
mapped AS (
  SELECT job, host, unnest(range(first_rank, last_rank + 1)) AS rank, first_rank
  FROM (
    SELECT job, host_name(host) AS host, min(first_rank) AS first_rank,
      max(coalesce(last_rank, first_rank)) AS last_rank
    FROM host_map GROUP BY job, host_name(host)
  )
  WHERE last_rank - first_rank < 1024
),
-- Ranks a job has beyond those whose host is told; without any, those of the map.
jobs AS (
  SELECT job, max(rank) AS last_rank FROM (
    SELECT job, rank FROM steps UNION ALL SELECT job, rank FROM collectives
  ) WHERE rank IS NOT NULL
  GROUP BY job
  UNION ALL
  SELECT job, max(rank) FROM mapped WHERE NOT EXISTS (
    SELECT 1 FROM (SELECT rank FROM steps UNION ALL SELECT rank FROM collectives) WHERE rank IS NOT NULL
  )
  GROUP BY job
)
SELECT job, rank, host, pid, gpu FROM told
UNION ALL
SELECT j.job, m.rank, any_value(m.host), NULL, any_value(m.rank - m.first_rank)
FROM jobs j JOIN mapped m ON coalesce(m.job, j.job) IS NOT DISTINCT FROM j.job AND m.rank <= j.last_rank
WHERE NOT EXISTS (
  SELECT 1 FROM told t WHERE t.job IS NOT DISTINCT FROM j.job AND (t.rank = m.rank OR t.pid IS NOT NULL)
)
GROUP BY j.job, m.rank
HAVING count(DISTINCT m.host) = 1;

-- Addresses by which NCCL names a peer, and the host that has each; completion errors tell more.
CREATE OR REPLACE VIEW host_addresses AS
SELECT address, any_value(host) AS host
FROM (
  SELECT alias AS address, host_name(host) AS host FROM host_aliases
  UNION
  SELECT regexp_replace(local_gid, '^::ffff:', ''), host_name(host)
  FROM nccl_events WHERE local_gid IS NOT NULL
)
WHERE address IS NOT NULL AND host IS NOT NULL
GROUP BY address
HAVING count(DISTINCT host) = 1;
