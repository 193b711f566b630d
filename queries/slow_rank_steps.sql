-- question: In which steps did a rank compute longer than its peers, and arrive later?
-- columns:
--   job               job
--   window_start      when the window begins, UTC
--   rank              rank in the job
--   host              host
--   first_step        first step of the window; null where only collectives tell
--   last_step         last step of the window; null where only collectives tell
--   compute_ms        median compute time of a step, ms
--   peer_compute_ms   the median rank's, of the ranks of its stage, ms
--   compute_longer    compute_ms over peer_compute_ms, less 1
--   comm_ms           median communication of a step or collective, waiting included, ms
--   peer_comm_ms      the median rank's, ms
--   data_ms           median wait of a step for its data, ms
--   peer_data_ms      the median rank's, ms
-- lines:
--   steps         compute_ms IS NOT NULL OR comm_ms IS NOT NULL
--   phases        rank IS NOT NULL AND duration_ms IS NOT NULL
--   collectives   true
-- peers:
--   steps         compute_ms
--   phases        duration_ms
--   collectives   duration_us
-- example: fabricobs query slow_rank_steps
--
-- A job has at most 30 windows, of equal numbers of steps. A slow rank computes longer than its
-- peers and communicates less: it arrives last, and its peers wait for it. Where records tell only how
-- long ranks communicate, waiting included, compute_ms is the rest of the step. Peers are all
-- ranks of the stage; of eight hosts or fewer those of the others, where they compute less and wait longer: half of all
-- ranks may be slow. Where no step record
-- tells of either, the collectives of a communicator are compared: the late rank's are shorter.
WITH own_steps AS (
  SELECT job, step, rank, host_name(host) AS host, coalesce(stage, 0) AS peers, ts,
    coalesce(compute_ms, own_ms) AS compute_ms, comm_ms, data_ms
  FROM rank_work
  WHERE own_ms IS NOT NULL
),
told AS (
  SELECT DISTINCT job FROM own_steps
),
calls AS (
  SELECT c.job, c.seq, coalesce(c.global_rank, r.rank) AS rank, host_name(c.host) AS host,
    hash(c.comm_id, c.op, c.bytes) AS peers, c.ts, c.duration_us / 1000 AS comm_ms
  FROM collectives c
  LEFT JOIN job_ranks r
    ON r.job IS NOT DISTINCT FROM c.job AND r.host = host_name(c.host) AND r.pid = c.pid
  WHERE c.duration_us > 0 AND c.nranks > 1 AND c.timing_source IS DISTINCT FROM 'collective_cpu'
    AND NOT EXISTS (SELECT 1 FROM told t WHERE t.job IS NOT DISTINCT FROM c.job)
),
records AS (
  SELECT *, step AS first_step, dense_rank() OVER (PARTITION BY job ORDER BY step) - 1 AS place
  FROM own_steps
  UNION ALL BY NAME
  SELECT * EXCLUDE (seq), dense_rank() OVER (PARTITION BY job ORDER BY seq) - 1 AS place
  FROM calls
  WHERE rank IS NOT NULL
),
placed AS (
  SELECT *, place * least(30, max(place) OVER w + 1) // (max(place) OVER w + 1) AS part
  FROM records
  WINDOW w AS (PARTITION BY job)
),
windows AS (
  SELECT job, part, min(ts) AS window_start, min(first_step) AS first_step, max(first_step) AS last_step
  FROM placed
  GROUP BY job, part
),
compared AS (
  SELECT job, part, rank, peers, max(host) AS host, median(compute_ms) AS compute_ms,
    median(comm_ms) AS comm_ms, median(data_ms) AS data_ms
  FROM placed
  GROUP BY job, part, rank, peers
),
few_hosts AS (
  SELECT job, part, peers, host FROM compared
  WHERE host IS NOT NULL
  GROUP BY job, part, peers, host
  QUALIFY count(*) OVER (PARTITION BY job, part, peers) BETWEEN 2 AND 8
),
others AS (
  SELECT h.job, h.part, h.peers, h.host, median(c.compute_ms) AS compute_ms, median(c.comm_ms) AS comm_ms,
    median(c.data_ms) AS data_ms
  FROM few_hosts h
  JOIN compared c ON c.job IS NOT DISTINCT FROM h.job AND c.part = h.part AND c.peers = h.peers AND c.host IS DISTINCT FROM h.host
  GROUP BY h.job, h.part, h.peers, h.host
),
beside AS (
  SELECT c.*, least(o.compute_ms, median(c.compute_ms) OVER p) AS peer_compute_ms,
    greatest(o.comm_ms, median(c.comm_ms) OVER p) AS peer_comm_ms,
    least(o.data_ms, median(c.data_ms) OVER p) AS peer_data_ms
  FROM compared c
  LEFT JOIN others o ON o.job IS NOT DISTINCT FROM c.job AND o.part = c.part AND o.peers = c.peers AND o.host = c.host
  WINDOW p AS (PARTITION BY c.job, c.part, c.peers)
)
SELECT b.job, w.window_start, b.rank, b.host, w.first_step, w.last_step, b.compute_ms, b.peer_compute_ms,
  b.compute_ms / nullif(b.peer_compute_ms, 0) - 1 AS compute_longer, b.comm_ms, b.peer_comm_ms, b.data_ms, b.peer_data_ms
FROM beside b
JOIN windows w ON w.job IS NOT DISTINCT FROM b.job AND w.part = b.part
ORDER BY b.job, b.part, compute_longer DESC NULLS LAST, b.comm_ms - b.peer_comm_ms, b.rank, b.peers;
