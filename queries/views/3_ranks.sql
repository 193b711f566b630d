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
    SELECT job, host_name(host) AS host, pid, line,
      -- The other end of a socket may have RDMA for all the rest: a host with one connection of RDMA has RDMA.
      coalesce(max(network) FILTER (network <> 'Socket') OVER (PARTITION BY job, host_name(host)), network)
        AS connected,
      CASE WHEN network IS DISTINCT FROM 'Socket' THEN gdr END AS gdr
    FROM nccl_channels
    WHERE transport = 'NET'
  )
  WHERE pid IS NOT NULL
  GROUP BY job, host, pid
);

-- The ranks of each job's largest communicator: the job's own rank numbers. Without NCCL logs the
-- hosts come from what else names rank and host. Of a job that shows no communicator of all its
-- ranks, only several of one size, the processes are known and their rank numbers are not: null.
CREATE OR REPLACE VIEW job_ranks AS
WITH called AS (
  SELECT DISTINCT c.job, c.comm_id, c.rank, host_name(c.host) AS host, c.pid
  FROM (
    FROM (SELECT DISTINCT job, comm_id, rank, host, pid, nranks FROM collectives)
    QUALIFY nranks = max(nranks) OVER (PARTITION BY job)
  ) c
  WHERE c.host IS NOT NULL
    AND NOT EXISTS (
      SELECT 1 FROM ranks l WHERE l.job IS NOT DISTINCT FROM c.job AND l.nranks > c.nranks
    )
),
largest AS (
  SELECT job, rank, host, pid, coalesce(nvml_device, cuda_device) AS gpu, comm_id, nranks,
    row_number() OVER (PARTITION BY job, rank ORDER BY nranks DESC, init_state = 'complete' DESC, comm) AS place
  FROM ranks
  QUALIFY nranks = max(nranks) OVER (PARTITION BY job)
),
split AS (
  SELECT DISTINCT job
  FROM (
    SELECT job, comm_id, rank, host, pid FROM largest WHERE comm_id LIKE '0x%'
    UNION ALL
    SELECT job, comm_id, rank, host, pid FROM called WHERE comm_id LIKE '0x%' AND pid IS NOT NULL
  )
  GROUP BY job, rank
  HAVING count(DISTINCT (host, pid)) > 1 AND count(DISTINCT comm_id) > 1
),
named AS (
  SELECT job, rank, max(host) AS host, NULL::BIGINT AS pid, NULL::BIGINT AS gpu
  FROM (
    SELECT job, rank, host_name(host) AS host
    FROM (SELECT DISTINCT job, rank, host FROM steps WHERE rank IS NOT NULL AND host IS NOT NULL)
    UNION ALL
    SELECT c.job, c.rank, c.host FROM called c
    ANTI JOIN split s ON s.job IS NOT DISTINCT FROM c.job
  )
  GROUP BY job, rank
),
unnumbered AS (
  SELECT m.job, m.host, m.pid, max(m.gpu) AS gpu, count(*) OVER (PARTITION BY m.job, m.host) AS processes
  FROM (
    SELECT job, host, pid, gpu FROM largest
    UNION ALL SELECT job, host, pid, NULL FROM called WHERE pid IS NOT NULL
  ) m
  SEMI JOIN split s ON s.job IS NOT DISTINCT FROM m.job
  GROUP BY m.job, m.host, m.pid
),
-- The ranks that records name on a host are its processes: where they name all, these need no row of their own.
same AS (
  SELECT u.job, u.host, any_value(n.ranks) >= any_value(u.processes) AS all_named
  FROM unnumbered u
  JOIN (SELECT job, host, count(*) AS ranks FROM named GROUP BY job, host) n
    ON n.job IS NOT DISTINCT FROM u.job AND n.host = u.host
  GROUP BY u.job, u.host
),
told AS (
  SELECT l.job, l.rank, l.host, l.pid, l.gpu FROM largest l
  ANTI JOIN split s ON s.job IS NOT DISTINCT FROM l.job
  WHERE l.place = 1
  UNION ALL
  SELECT u.job, NULL, u.host, u.pid, u.gpu FROM unnumbered u
  ANTI JOIN same s ON s.job IS NOT DISTINCT FROM u.job AND s.host = u.host AND s.all_named
  UNION ALL
  SELECT job, rank, host, pid, gpu FROM named n
  WHERE NOT EXISTS (
    SELECT 1 FROM largest l ANTI JOIN split s ON s.job IS NOT DISTINCT FROM l.job
    WHERE l.job IS NOT DISTINCT FROM n.job AND l.rank = n.rank
  )
  AND NOT EXISTS (
    SELECT 1 FROM same s WHERE s.job IS NOT DISTINCT FROM n.job AND s.host = n.host AND NOT s.all_named
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

-- Processes whose rank in the job is known, for the rows that state only host and pid: `rank_source`
-- is `communicator` (the job's largest) or `path` (the name of a file that holds this process alone).
-- A process of several ranks has a row for each, with the `cuda_device` that tells them apart; one
-- that no device tells apart has none.
CREATE OR REPLACE VIEW process_ranks AS
WITH devices AS (
  SELECT job, host, pid, min(cuda_device) <> max(cuda_device) AS several
  FROM nccl_ranks
  GROUP BY job, host, pid
),
gpus AS (
  SELECT job, host, pid, coalesce(nvml_device, cuda_device) AS gpu, max(cuda_device) AS cuda_device
  FROM ranks
  GROUP BY ALL
),
told AS (
  SELECT j.job, j.host, j.pid, j.rank, g.cuda_device,
    count(*) OVER (PARTITION BY j.job, j.host, j.pid) > 1 OR coalesce(d.several, false) AS several,
    count(*) OVER (PARTITION BY j.job, j.host, j.pid, g.cuda_device) AS of_device
  FROM job_ranks j
  LEFT JOIN gpus g ON g.job IS NOT DISTINCT FROM j.job AND g.host = j.host AND g.pid = j.pid
    AND g.gpu IS NOT DISTINCT FROM j.gpu
  LEFT JOIN devices d ON d.job IS NOT DISTINCT FROM j.job AND d.host = j.host AND d.pid = j.pid
  WHERE j.pid IS NOT NULL AND j.rank IS NOT NULL
),
lines AS (
  SELECT job, file_id, host, pid, cuda_device FROM nccl_ranks
  UNION SELECT job, file_id, host, pid, cuda_device FROM nccl_env
  UNION SELECT job, file_id, host, pid, cuda_device FROM nccl_nics
  UNION SELECT job, file_id, host, pid, cuda_device FROM nccl_channels
  UNION SELECT job, file_id, host, pid, cuda_device FROM nccl_events
),
named AS (
  SELECT l.job, any_value(l.host) AS host, any_value(l.pid) AS pid, any_value(f.rank) AS rank
  FROM lines l JOIN files f ON f.file_id = l.file_id
  WHERE f.rank IS NOT NULL AND l.host IS NOT NULL AND l.pid IS NOT NULL
  GROUP BY l.job, l.file_id
  HAVING count(DISTINCT (l.host, l.pid)) = 1 AND count(DISTINCT l.cuda_device) <= 1
)
SELECT job, host, pid, CASE WHEN several THEN cuda_device END AS cuda_device, rank,
  'communicator' AS rank_source
FROM told
WHERE NOT several OR (cuda_device IS NOT NULL AND of_device = 1)
UNION ALL
SELECT job, host, pid, NULL, any_value(rank), 'path'
FROM named n
WHERE NOT EXISTS (
  SELECT 1 FROM told t WHERE t.job IS NOT DISTINCT FROM n.job AND t.host = n.host AND t.pid = n.pid
)
GROUP BY job, host, pid
HAVING count(DISTINCT rank) = 1;

-- The rows of a table of NCCL with `job_rank`, their rank in the job, and what says so: `rank_source`
-- is one of `process_ranks` or `launcher` (before the line).
CREATE OR REPLACE MACRO with_ranks(name) AS TABLE
SELECT t.*,
  CASE WHEN p.rank_source = 'communicator' OR t.launch_rank IS NULL THEN p.rank ELSE t.launch_rank END
    AS job_rank,
  CASE WHEN p.rank_source = 'communicator' OR t.launch_rank IS NULL THEN p.rank_source ELSE 'launcher' END
    AS rank_source
FROM query_table(name) t
LEFT JOIN process_ranks p ON p.job IS NOT DISTINCT FROM t.job AND p.host = t.host AND p.pid = t.pid
  AND (p.cuda_device IS NULL OR p.cuda_device = t.cuda_device);

-- nccl_env with the rank in the job, as `with_ranks` tells it.
CREATE OR REPLACE VIEW env_by_rank AS FROM with_ranks('nccl_env');

-- nccl_nics with the rank in the job, as `with_ranks` tells it.
CREATE OR REPLACE VIEW nics_by_rank AS FROM with_ranks('nccl_nics');

-- nccl_channels with the rank in the job, as `with_ranks` tells it.
CREATE OR REPLACE VIEW channels_by_rank AS FROM with_ranks('nccl_channels');

-- nccl_events with the rank in the job, as `with_ranks` tells it; `rank` is what the line names.
CREATE OR REPLACE VIEW events_by_rank AS FROM with_ranks('nccl_events');

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

-- Events with the index of the GPU that they report: kernels name it by its PCI address, which NCCL prints without marks
-- and leading zeros: 0000:ba:00.0 is ba000.
CREATE OR REPLACE VIEW named_events AS
WITH gpus AS (
  SELECT host, ltrim(lower(bus_id), '0') AS bus_id, any_value(coalesce(nvml_device, cuda_device)) AS gpu
  FROM ranks
  WHERE host IS NOT NULL AND bus_id IS NOT NULL
  GROUP BY ALL
)
SELECT e.*, coalesce(try_cast(CASE WHEN e.kind IN ('xid', 'sxid', 'gpu_error') THEN e.part END AS BIGINT), g.gpu) AS gpu
FROM events e
LEFT JOIN gpus g ON g.host = host_name(e.host)
  AND g.bus_id = ltrim(replace(regexp_replace(lower(e.part), '\.\d$', ''), ':', '') || '0', '0');
