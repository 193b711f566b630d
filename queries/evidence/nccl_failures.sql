-- question: What failed in a job, as NCCL's warnings tell, and on which host?
-- A row is a part that failed. Of a job's warnings those count that are nearest to a cause, by `class`: 0 what NCCL
-- refuses to start with, 1 an error of CUDA, 2 an event of a NIC, 3 a transfer that the sender's NIC refused, 4 one that the receiver refused, 5 one that
-- was not answered, 6 a connection that the other end closed, 7 a benchmark that gave up; `others` follow from them.
-- Status numbers are those of ibv_wc_status (libibverbs/verbs.h). Of transfers between two, the host that has part in most pairs is named. After
-- a watchdog's time-out processes end and close connections: that is no failure. `survived`: steps follow the last warning.
WITH statuses (status, class, meaning) AS (
  VALUES
    (1, 3, 'the length of a transfer does not fit'), (2, 3, 'a queue pair is broken'),
    (4, 3, 'memory is not registered for what is sent'), (6, 3, 'a memory window is not bound'),
    (7, 3, 'an answer was not understood'), (8, 3, 'memory may not be written'),
    (9, 4, 'it refuses a request as invalid'), (10, 4, 'it refuses access to its memory'),
    (11, 4, 'it cannot do what is asked'), (12, 5, 'it does not answer'), (13, 5, 'it is not ready to receive')
),
warned AS (
  SELECT e.job, e.ts, host_name(e.host) AS host, e.nic, e.status, trim(e.text, ' ''') AS text, s.meaning,
    coalesce(a.host, b.host, n.host, host_name(split_part(e.peer, '<', 1)), e.remote_gid) AS far,
    CASE
      WHEN e.kind = 'mismatch' AND regexp_matches(e.text, 'both on CUDA device|^rank \d+ version|^receiving \d+ bytes') THEN 0
      WHEN e.kind = 'cuda' THEN 1
      WHEN e.kind = 'failover' THEN 2
      WHEN e.kind = 'async_event' AND e.text NOT ILIKE '%non-fatal%'
        AND regexp_matches(e.text, '(?i)fatal|catastrophic|access violation|invalid request|queue error|cq error') THEN 2
      WHEN e.kind = 'completion_error' THEN coalesce(s.class, CASE WHEN e.status <> 5 THEN 5 END)
      WHEN e.kind = 'verbs' THEN 3
      WHEN e.kind = 'socket' AND NOT EXISTS (
        FROM nccl_events w WHERE w.kind = 'watchdog_timeout' AND w.job IS NOT DISTINCT FROM e.job) THEN 6
      -- A footer that counts wrong elements, or tells a bandwidth, is no failure of NCCL: that is told of the benchmark.
      WHEN e.kind = 'benchmark_failed' AND NOT regexp_full_match(trim(e.text), '[0-9.]+') THEN 7
    END AS class
  FROM nccl_events e
  LEFT JOIN statuses s ON e.kind = 'completion_error' AND s.status = e.status
  -- A peer that is gone told nobody its GID; its address for the start is known.
  LEFT JOIN host_addresses a ON a.address = regexp_replace(e.remote_gid, '^::ffff:', '')
  LEFT JOIN host_addresses b ON b.address = split_part(e.peer, '<', 1)
  LEFT JOIN (SELECT DISTINCT host_name(host) AS host FROM nccl_ranks) n ON n.host = host_name(split_part(e.peer, '<', 1))
  WHERE e.level IS DISTINCT FROM 'INFO'
),
nearest AS (
  SELECT *, class IN (4, 5, 6) AS of_pair FROM warned
  WHERE class IS NOT NULL AND coalesce(host, far) IS NOT NULL
  QUALIFY class = min(class) OVER (PARTITION BY job)
),
pairs AS (
  SELECT DISTINCT job, least(host, far) AS one, greatest(host, far) AS other FROM nearest
  WHERE of_pair AND host IS NOT NULL AND far IS NOT NULL AND host <> far
),
degrees AS (
  SELECT job, unnest([one, other]) AS host, count(*) OVER (PARTITION BY job) AS pairs FROM pairs
),
hubs AS (
  SELECT job, host, count(*) AS partners FROM degrees
  GROUP BY job, host, pairs
  HAVING count(*) >= 2 AND count(*) >= $share * pairs
  QUALIFY count(*) OVER (PARTITION BY job) = 1
),
placed AS (
  SELECT n.*, h.partners,
    -- The end that most of the pairs have in common; else the receiver where it refused or closed, else who warned.
    CASE WHEN of_pair THEN coalesce(h.host, CASE WHEN class <> 5 THEN far END, n.host) ELSE n.host END AS culprit,
    CASE WHEN class IN (2, 3) OR (class = 5 AND h.host IS NULL) THEN nic END AS culprit_nic,
    CASE
      WHEN class = 0 AND text LIKE '%CUDA device%' THEN 'two ranks use one GPU: ' || text
      WHEN class = 0 AND text LIKE '% version %' THEN 'ranks have different versions of it: ' || text
      WHEN class = 0 THEN 'ranks disagree on the size of a collective: ' || text
      WHEN class = 1 THEN 'CUDA says: ' || CASE WHEN text ILIKE '% bytes' THEN 'out of memory' ELSE text END
      WHEN class = 2 THEN 'the NIC reports: ' || text
      WHEN class = 6 THEN 'it closed its connections'
      WHEN class = 7 THEN 'a benchmark ends with: ' || rtrim(text, ' /''')
      WHEN meaning IS NULL THEN 'a call of the NIC failed' || coalesce(' (status ' || status || ')', '')
      WHEN class = 5 AND h.host IS NULL THEN 'its peer' || coalesce(' ' || far, '') || substr(meaning, 3)
      ELSE meaning
    END AS what,
    CASE class
      WHEN 0 THEN 'CUDA_VISIBLE_DEVICES and torch.cuda.set_device(local_rank); NCCL of each container; the order of the calls of collectives.'
      WHEN 1 THEN 'nvidia-smi -q -d MEMORY,ECC and dmesg -T | grep -i xid: another process on the GPU, or the GPU itself?'
      WHEN 2 THEN 'dmesg -T | grep -i mlx5, ibstat, ulimit -l, and whether nvidia_peermem or DMA-BUF of the driver fits the kernel.'
      WHEN 3 THEN 'ulimit -l unlimited in the container, nvidia_peermem loaded or DMA-BUF there; NCCL_NET_GDR_LEVEL=LOC tells whether GPUDirect is at fault.'
      WHEN 4 THEN 'its own log and dmesg -T at that time: did its process end first, or its memory registration fail?'
      WHEN 5 THEN 'ibstat or ip link at both ends, errors and state of the switch ports between, and ib_write_bw between the two.'
      ELSE 'the last lines of its own log and dmesg -T: was its process killed (memory, time limit), or did it fail first?'
    END AS to_check
  FROM nearest n
  LEFT JOIN hubs h ON h.job IS NOT DISTINCT FROM n.job
),
totals AS (SELECT job, count(*) AS warnings FROM warned GROUP BY job),
-- A launcher that was told to stop as the first transfers failed, or shortly before, took its processes along.
stops AS (
  SELECT w.job, min(e.ts) AS stopped_at
  FROM (SELECT job, min(ts) AS first_warning FROM warned WHERE class IS NOT NULL GROUP BY job) w
  JOIN events e ON e.kind = 'stopped'
    AND e.ts BETWEEN w.first_warning - $before * INTERVAL 1 SECOND AND w.first_warning + $after * INTERVAL 1 SECOND
  GROUP BY w.job
),
lasted AS (SELECT job, max(ts) AS last_step FROM step_times GROUP BY job)
SELECT p.job, p.culprit AS host, p.culprit_nic AS nic, CASE WHEN p.culprit_nic IS NULL THEN 'host' ELSE 'nic' END AS type,
  p.class, mode(p.what ORDER BY p.what) AS what, any_value(p.to_check) AS to_check, count(*) AS warnings,
  string_agg(DISTINCT p.host, ', ' ORDER BY p.host) AS told_by, max(p.partners) AS partners,
  any_value(t.warnings) AS all_warnings,
  list(DISTINCT {'type': 'host', 'host': CASE WHEN p.host = p.culprit THEN p.far ELSE p.host END})
    FILTER (of_pair AND CASE WHEN p.host = p.culprit THEN p.far ELSE p.host END IS NOT NULL) AS related,
  min(p.ts) AS ts_before, max(p.ts) AS ts,
  coalesce(any_value(l.last_step) > max(p.ts) + INTERVAL 1 MINUTE, false) AS survived,
  CASE WHEN p.class >= 5 THEN any_value(s.stopped_at) END AS stopped_at
FROM placed p
JOIN totals t ON t.job IS NOT DISTINCT FROM p.job
LEFT JOIN lasted l ON l.job IS NOT DISTINCT FROM p.job
LEFT JOIN stops s ON s.job IS NOT DISTINCT FROM p.job
GROUP BY p.job, p.culprit, p.culprit_nic, p.class
ORDER BY p.job, host, nic
