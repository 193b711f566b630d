-- The NICs each job has: link rate of one, and how many of them a host uses, both the median over hosts.
-- NCCL's own list comes first, then what the hosts themselves say of their ports, then the leaf ports that
-- their cables lead to: those of the highest rate, of which a host has as many as NICs for the job.
CREATE OR REPLACE VIEW job_networks AS
WITH listed AS (
  SELECT job, median(speed_gbps) AS speed_gbps
  FROM (
    SELECT job, host, nic, max(speed_mbps) / 1000 AS speed_gbps
    FROM nccl_nics
    WHERE plugin IS DISTINCT FROM 'Socket' AND speed_mbps > 0
    GROUP BY job, host, nic
  )
  GROUP BY job
),
host_ports AS (
  SELECT r.job, s.device, s.port, max(s.speed_gbps) AS speed_gbps
  FROM named_status s
  JOIN (SELECT DISTINCT job, host FROM job_ranks) r ON r.host = s.device
  WHERE s.speed_gbps > 0
  GROUP BY r.job, s.device, s.port
  QUALIFY max(s.speed_gbps) = max(max(s.speed_gbps)) OVER (PARTITION BY r.job, s.device)
),
host_nics AS (
  SELECT job, median(speed_gbps) AS speed_gbps, median(nics) AS nics
  FROM (
    SELECT job, device, max(speed_gbps) AS speed_gbps, count(*) AS nics
    FROM host_ports
    GROUP BY job, device
  )
  GROUP BY job
),
leaf_ports AS (
  SELECT job, median(speed_gbps) AS speed_gbps, median(nics) AS nics
  FROM (
    SELECT r.job, r.host, s.speed_gbps, count(DISTINCT (c.owner, c.part)) AS nics
    FROM cable_ends c
    JOIN (SELECT DISTINCT job, host FROM job_ranks) r ON r.host = host_name(c.far_owner)
    JOIN told_speeds s
      ON s.device = c.owner AND s.port = c.part
    WHERE c.far_is_nic AND s.speed_gbps > 0
    GROUP BY r.job, r.host, s.speed_gbps
    QUALIFY s.speed_gbps = max(s.speed_gbps) OVER (PARTITION BY r.job, r.host)
  )
  GROUP BY job
),
used AS (
  SELECT job, median(nics) AS nics
  FROM (SELECT job, host, count(DISTINCT nic) AS nics FROM rank_paths GROUP BY job, host)
  WHERE nics > 0
  GROUP BY job
)
SELECT j.job, coalesce(l.speed_gbps, h.speed_gbps, p.speed_gbps) / 8 AS link_gbytes_per_s,
  coalesce(u.nics, h.nics, p.nics) AS nics
FROM (
  SELECT job FROM listed UNION SELECT job FROM host_nics UNION SELECT job FROM used UNION SELECT job FROM leaf_ports
) j
LEFT JOIN leaf_ports p ON p.job IS NOT DISTINCT FROM j.job
LEFT JOIN listed l ON l.job IS NOT DISTINCT FROM j.job
LEFT JOIN host_nics h ON h.job IS NOT DISTINCT FROM j.job
LEFT JOIN used u ON u.job IS NOT DISTINCT FROM j.job;

-- The model of the GPUs a job runs on, as their hosts tell it; null where these have several.
CREATE OR REPLACE VIEW job_gpus AS
SELECT r.job, CASE WHEN count(DISTINCT g.model) = 1 THEN min(g.model) END AS gpu
FROM (SELECT DISTINCT job, host FROM job_ranks) r
JOIN (SELECT DISTINCT host_name(host) AS host, model FROM gpu_samples WHERE model IS NOT NULL) g USING (host)
GROUP BY r.job;

-- Collectives of a job by kind and size, with the NICs they can use, or, inside one host, its GPUs. `bytes` is the whole message. `nics` is
-- that of a host in the part its ranks have of all ranks there: the groups of a job send at the same time.
CREATE OR REPLACE VIEW collective_classes AS
WITH sizes AS (
  SELECT job, max(ranks) AS host_ranks
  FROM (SELECT job, host, count(DISTINCT rank) AS ranks FROM job_ranks WHERE host IS NOT NULL GROUP BY job, host)
  GROUP BY job
)
SELECT c.job, c.op, c.nranks, c.nodes, (2 ^ floor(log2(c.bytes)))::BIGINT AS size_class,
  median(c.bytes * CASE WHEN c.op = 'AllReduce' THEN 1 ELSE c.nranks END) AS bytes,
  count(*) AS calls,
  quantile_cont(c.busbw_gbytes_per_s, 0.5) AS busbw_p50_gbytes_per_s,
  quantile_cont(c.busbw_gbytes_per_s, 0.95) AS busbw_p95_gbytes_per_s,
  quantile_cont(c.pure_us, 0.5) AS pure_p50_us,
  CASE WHEN c.nodes > 1 THEN any_value(n.link_gbytes_per_s) END AS link_gbytes_per_s,
  CASE WHEN c.nodes > 1 AND any_value(n.nics) IS NOT NULL THEN least(ceil(c.nranks / c.nodes),
    any_value(n.nics) * least(1.0, c.nranks / c.nodes / any_value(s.host_ranks))) END AS nics,
  CASE WHEN c.nodes = 1 THEN any_value(g.gpu) END AS gpu
FROM collective_calls c
LEFT JOIN job_gpus g ON g.job IS NOT DISTINCT FROM c.job
LEFT JOIN job_networks n ON n.job IS NOT DISTINCT FROM c.job
LEFT JOIN sizes s ON s.job IS NOT DISTINCT FROM c.job
WHERE c.bytes > 0 AND c.nranks > 1
GROUP BY c.job, c.op, c.nranks, c.nodes, size_class;

-- The collective between hosts that a job spends most time in, and what is expected of it. Jobs whose hosts also
-- run others, and those of unknown NICs, have none.
CREATE OR REPLACE VIEW job_bandwidths AS
SELECT m.*
FROM with_expectations('collective_classes') m
ANTI JOIN (SELECT DISTINCT job FROM job_ranks SEMI JOIN shared_hosts USING (host)) s
  ON s.job IS NOT DISTINCT FROM m.job
WHERE m.nodes > 1 AND m.expected_low_gbytes_per_s IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY m.job ORDER BY m.calls * m.pure_p50_us DESC, m.op, m.bytes DESC) = 1;

-- An address that perftest prints, as other outputs name it: `lid 2`, an IPv4 address, or the GUID of a port.
CREATE OR REPLACE MACRO perftest_address(address) AS CASE
  WHEN address LIKE 'lid %' THEN nullif(address, 'lid 0')
  WHEN regexp_full_match(address, '(0+:){10}255:255(:[0-9]+){4}')
    THEN array_to_string(list_transform(string_split(address, ':')[13:], lambda x: x::INT), '.')
  WHEN regexp_full_match(address, '([0-9]+:){15}[0-9]+')
    THEN '0x' || array_to_string(list_transform(string_split(address, ':')[9:], lambda x: lower(format('{:02x}', x::INT))), '')
END;

-- Rows of perftest with the run each is of (sizes grow in a run), the hosts at both ends, the one that wrote the output
-- first, and the rate of the slower port. An end that neither a path nor an address names is null.
CREATE OR REPLACE VIEW perftest_rows AS
WITH addresses AS (
  SELECT id AS address, host_name(device) AS host, nic FROM device_names WHERE id LIKE 'lid %' OR id LIKE '0x%'
  UNION ALL
  SELECT address, host, NULL FROM host_addresses
),
rates AS (
  SELECT n.host, n.nic, max(s.speed_gbps) / 8 AS gbytes_per_s
  FROM named_status s JOIN nic_names n ON n.host = host_name(s.device) AND n.name = s.port
  WHERE s.speed_gbps > 0
  GROUP BY n.host, n.nic
),
begun AS (
  SELECT file_id, line, host, nic, address, remote_address,
    coalesce(bytes <= lag(bytes) OVER f OR test IS DISTINCT FROM lag(test) OVER f OR nic IS DISTINCT FROM lag(nic) OVER f, true)::INT AS begins
  FROM benchmarks WHERE test LIKE 'ib_%'
  WINDOW f AS (PARTITION BY file_id ORDER BY line)
),
ends AS (
  SELECT b.file_id, b.line, sum(b.begins) OVER (PARTITION BY b.file_id ORDER BY b.line)::BIGINT AS run, b.nic,
    coalesce(host_name(b.host), l.host) AS host, r.host AS remote_host, coalesce(r.nic, b.nic) AS remote_nic
  FROM begun b
  LEFT JOIN addresses l ON l.address = perftest_address(b.address)
  LEFT JOIN addresses r ON r.address = perftest_address(b.remote_address)
)
SELECT e.file_id, e.line, e.run,
  CASE WHEN e.host IS NULL THEN NULL WHEN e.remote_host IS NULL THEN [e.host] ELSE [e.host, e.remote_host] END AS hosts,
  CASE WHEN e.host IS NOT NULL AND e.remote_host IS NOT NULL THEN len(list_distinct([e.host, e.remote_host])) END AS nodes,
  least(n.gbytes_per_s, f.gbytes_per_s) AS link_gbytes_per_s
FROM ends e
LEFT JOIN rates n ON n.host = e.host AND n.nic = e.nic
LEFT JOIN rates f ON f.host = e.remote_host AND f.nic = e.remote_nic
-- A port whose rate is not told may be the slower one, but what the other allows is not exceeded.
QUALIFY row_number() OVER (PARTITION BY e.file_id, e.line ORDER BY link_gbytes_per_s) = 1;

-- Rows of nccl-tests, rccl-tests and perftest with the run they are of, and what it ran on. A run is what one
-- start printed: from the line of rank 0 to the next. `hosts` is null where ranks are missing in the output, `gpu` a list
-- where its ranks have several models.
-- `op` of a test that is not named follows from busbw over algbw. `nics` and `link_gbytes_per_s` are those NCCL
-- lists in the same file, else those the hosts tell. `asked_nics` are those the run was told to use, null for all.
CREATE OR REPLACE VIEW benchmark_rows AS
WITH members AS (
  SELECT file_id, line, rank, host_name(host) AS host, gpu_name,
    count(*) FILTER (rank = 0) OVER (PARTITION BY file_id ORDER BY line ROWS UNBOUNDED PRECEDING) AS run
  FROM nccl_ranks
  WHERE comm IS NULL AND comm_id IS NULL AND rank IS NOT NULL AND cuda_device IS NOT NULL
),
runs AS (
  SELECT file_id, greatest(run, 1) AS run, max(rank) + 1 AS nranks, min(line) AS first_line,
    string_agg(DISTINCT gpu_name, ', ' ORDER BY gpu_name) AS gpu,
    CASE WHEN count(DISTINCT rank) = max(rank) + 1 THEN list_sort(list(DISTINCT host)) END AS hosts
  FROM members GROUP BY file_id, greatest(run, 1)
),
listed AS (
  SELECT file_id, median(nics) AS nics, median(speed_mbps) / 8000 AS link_gbytes_per_s, list_sort(list_distinct(flatten(list(names)))) AS names
  FROM (
    SELECT file_id, host, count(DISTINCT nic) AS nics, max(speed_mbps) AS speed_mbps, list(DISTINCT nic) AS names
    FROM (SELECT *, max(speed_mbps) OVER (PARTITION BY file_id, host) AS fastest FROM nccl_nics
      WHERE plugin IS DISTINCT FROM 'Socket' AND nic IS NOT NULL)
    WHERE speed_mbps IS NOT DISTINCT FROM fastest
    GROUP BY file_id, host
  )
  GROUP BY file_id
),
asked AS (
  SELECT file_id, list_sort(list(DISTINCT regexp_replace(trim(value), '^[=^]+|:\d+$', '', 'g'))) AS names
  FROM (SELECT file_id, unnest(string_split(value, ',')) AS value FROM nccl_env
    WHERE name = 'NCCL_IB_HCA' AND value NOT LIKE '^%')
  GROUP BY file_id
),
ports AS (
  SELECT host, count(*) AS nics, max(speed_gbps) / 8 AS link_gbytes_per_s
  FROM (
    SELECT host_name(device) AS host, port, max(speed_gbps) AS speed_gbps FROM named_status
    WHERE speed_gbps > 0 AND regexp_matches(port, '^[a-z][a-z0-9_]*/\d+$')
    GROUP BY host_name(device), port
    QUALIFY max(speed_gbps) = max(max(speed_gbps)) OVER (PARTITION BY host_name(device))
  )
  GROUP BY host
),
versions AS (
  SELECT file_id, max(version) AS version FROM nccl_ranks WHERE version IS NOT NULL GROUP BY file_id
),
named AS (
  SELECT b.*, f.path, coalesce(p.run, r.run, 1) AS run, CASE WHEN p.run IS NULL THEN r.nranks ELSE 2 END AS nranks,
    CASE WHEN p.run IS NULL THEN len(r.hosts) ELSE p.nodes END AS nodes,
    coalesce(p.hosts, r.hosts, CASE WHEN b.host IS NOT NULL THEN [host_name(b.host)] END) AS hosts, r.gpu, v.version,
    coalesce(CASE WHEN b.nic IS NOT NULL THEN [b.nic] END, l.names, a.names) AS nic_names,
    coalesce(b.nic, array_to_string(a.names, ' ')) AS asked_nics,
    CASE WHEN p.run IS NULL THEN coalesce(l.nics, len(a.names), h.nics) END AS host_nics,
    CASE WHEN p.run IS NULL THEN coalesce(l.link_gbytes_per_s, h.link_gbytes_per_s) ELSE p.link_gbytes_per_s END AS link_gbytes_per_s,
    coalesce(b.busbw_gbytes_per_s / nullif(b.algbw_gbytes_per_s, 0), 1) AS factor, lower(replace(b.test, '_', '')) AS called
  FROM benchmarks b
  LEFT JOIN files f ON f.file_id = b.file_id
  LEFT JOIN perftest_rows p ON p.file_id = b.file_id AND p.line = b.line
  ASOF LEFT JOIN runs r ON r.file_id = b.file_id AND b.line >= r.first_line
  LEFT JOIN versions v ON v.file_id = b.file_id
  LEFT JOIN listed l ON l.file_id = b.file_id
  LEFT JOIN asked a ON a.file_id = b.file_id
  LEFT JOIN ports h ON h.host = coalesce(r.hosts[1], host_name(b.host))
)
SELECT * EXCLUDE (factor, called, host_nics),
  CASE WHEN nodes > 1 AND host_nics IS NOT NULL THEN least(host_nics, ceil(nranks / nodes)) END AS nics,
  CASE
    WHEN called LIKE '%allreduce%' THEN 'AllReduce'
    WHEN called LIKE '%allgather%' THEN 'AllGather'
    WHEN called LIKE '%reducescatter%' THEN 'ReduceScatter'
    WHEN called LIKE '%alltoall%' THEN 'AlltoAll'
    WHEN called LIKE '%sendrecv%' THEN 'SendRecv'
    WHEN called LIKE '%broadcast%' THEN 'Broadcast'
    WHEN regexp_matches(called, '^(hccl)?reduce(perf|test|$)') THEN 'Reduce'
    WHEN test IS NOT NULL OR nranks < 3 THEN NULL
    WHEN red_op = 'sum' AND coalesce(root, -1) = -1 AND median(factor) OVER r > 1.2 THEN 'AllReduce'
    WHEN red_op = 'sum' AND coalesce(root, -1) = -1 AND median(factor) OVER r < 0.99 THEN 'ReduceScatter'
    WHEN red_op = 'sum' AND root >= 0 THEN 'Reduce'
    WHEN red_op = 'none' AND root >= 0 THEN 'Broadcast'
  END AS op
FROM named
WINDOW r AS (PARTITION BY file_id, run);

-- Files whose last changes are so close are of one copy (`_ONE_COPY_US` of the reader): they tell no order.
CREATE OR REPLACE MACRO one_copy() AS INTERVAL 5 MINUTE;

-- A run of a benchmark in one row, `name` its file and its number there. Its largest message is held against what is
-- expected, against alike runs (same test, ranks, nodes, GPUs, library version and size), and against the run before
-- it: the last earlier one that was alike on the same hosts and was told to use the same NICs. Its smallest AllReduce is held against what is expected.
-- What a run does not state of ranks and hosts is no likeness: two of unknown hosts may be of two clusters, even in one
-- folder, so they are alike to none. A run is dated by its output, else by its path, else by the last change of its
-- file; `ran_from` and `ran_to` are as far as that tells. The run before lies in the same file, or ended before this
-- began; where nothing orders two runs, none is before the other.
-- `dip_bytes` is the largest message that took a quarter longer than a larger one, or than the same in place (or out
-- of place). `usual_gbytes_per_s` is the median of alike runs. `verdict` is the first that holds;
-- `queries/acceptance.sql` says what each means.
CREATE OR REPLACE VIEW benchmark_runs AS
WITH judged AS (
  SELECT e.* REPLACE (
      coalesce(e.limit_gbytes_per_s, p.ways * e.link_gbytes_per_s) AS limit_gbytes_per_s,
      coalesce(e.expected_low_gbytes_per_s, p.ways * e.link_gbytes_per_s * p.low_share) AS expected_low_gbytes_per_s,
      coalesce(e.expected_high_gbytes_per_s, p.ways * e.link_gbytes_per_s * p.high_share) AS expected_high_gbytes_per_s,
      coalesce(e.expected_high_us, l.high_us) AS expected_high_us,
      coalesce(e.expected_source, p.source, l.source) AS expected_source
    ),
    coalesce(busbw_gbytes_per_s, in_place_busbw_gbytes_per_s) AS reached,
    coalesce(time_us, in_place_time_us) AS took,
    min(least(coalesce(time_us, in_place_time_us), coalesce(in_place_time_us, time_us))) OVER (
      PARTITION BY file_id, run, e.test ORDER BY bytes ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS fastest_after
  FROM with_expectations('benchmark_rows') e
  LEFT JOIN expected_perftest p ON regexp_full_match(e.test, p.test) AND e.bytes >= p.least_bytes
    AND e.link_gbytes_per_s * 8 > p.above_gbps AND e.link_gbytes_per_s * 8 <= p.up_to_gbps
  -- EFA's reliable datagrams take longer, and how long no source tells.
  LEFT JOIN expected_perftest_latency l ON regexp_full_match(e.test, l.test) AND e.bytes <= l.up_to_bytes
    AND NOT regexp_matches(coalesce(e.nic, ''), '^(efa|rdmap)')
  WHERE time_kind IS DISTINCT FROM 'launch' AND bytes > 0
),
runs AS (
  SELECT file_id, path, run, parse_filename(path) || CASE WHEN run > 1 THEN ' run ' || run ELSE '' END AS name, test,
    min(op) AS op, min(nranks) AS nranks, min(nodes) AS nodes,
    min(hosts) AS hosts, min(nic_names) AS nics, min(nic) AS nic, min(asked_nics) AS asked_nics, min(queue_pairs) AS queue_pairs,
    min(mtu) AS mtu, min(link_gbytes_per_s) AS link_gbytes_per_s, min(gpu) AS gpu, min(version) AS version,
    min(job) AS job, min(ts) FILTER (ts_source IN ('inline', 'header')) AS ts,
    max(bytes) AS bytes, median(reached) FILTER (bytes = largest) AS busbw_gbytes_per_s,
    max(limit_gbytes_per_s) FILTER (bytes = largest) AS limit_gbytes_per_s,
    max(expected_low_gbytes_per_s) FILTER (bytes = largest) AS expected_low_gbytes_per_s,
    max(expected_high_gbytes_per_s) FILTER (bytes = largest) AS expected_high_gbytes_per_s,
    max(expected_source) FILTER (bytes = largest) AS expected_source,
    arg_min(took, (bytes, took)) FILTER (expected_high_us IS NOT NULL AND took IS NOT NULL) AS small_us,
    arg_min(expected_high_us, (bytes, took)) FILTER (expected_high_us IS NOT NULL) AS small_high_us,
    max(bytes) FILTER (greatest(took, in_place_time_us) > 1.25 * fastest_after) AS dip_bytes,
    CASE WHEN count(wrong) + count(in_place_wrong) > 0 THEN
      sum(CASE WHEN wrong >= 1 THEN wrong ELSE 0 END + CASE WHEN in_place_wrong >= 1 THEN in_place_wrong ELSE 0 END)
    END AS wrong
  FROM (SELECT *, max(bytes) FILTER (reached IS NOT NULL) OVER (PARTITION BY file_id, run, test) AS largest FROM judged)
  GROUP BY file_id, path, run, test
),
-- As texts: DuckDB finds no lists or structs equal in an ASOF join.
dated AS (
  SELECT r.*, CASE WHEN r.nodes IS NOT NULL THEN
      {'test': r.test, 'op': r.op, 'nranks': r.nranks, 'nodes': r.nodes, 'bytes': r.bytes, 'gpu': r.gpu, 'version': r.version,
        'queue_pairs': r.queue_pairs, 'mtu': r.mtu, 'link': CASE WHEN r.nic IS NOT NULL THEN r.link_gbytes_per_s END}::VARCHAR
    END AS likeness, concat_ws(' ', array_to_string(r.hosts, ' '), r.asked_nics) AS own_hosts,
    coalesce(r.ts, CASE WHEN f.dated_source = 'day' AND f.modified - f.dated BETWEEN INTERVAL 0 DAY AND INTERVAL 1 DAY
      THEN f.modified ELSE f.dated END, f.modified) AS ran_from,
    CASE WHEN r.ts IS NOT NULL OR f.dated_source <> 'day' THEN ran_from
      WHEN ran_from = f.modified THEN ran_from + one_copy()
      ELSE ran_from + INTERVAL 1 DAY - INTERVAL 1 MICROSECOND END AS ran_to
  FROM runs r LEFT JOIN files f USING (file_id)
),
ended AS (
  SELECT likeness, own_hosts, ran_to, max(busbw_gbytes_per_s) AS reached
  FROM dated
  WHERE likeness IS NOT NULL AND busbw_gbytes_per_s IS NOT NULL AND ran_to IS NOT NULL
  GROUP BY likeness, own_hosts, ran_to
),
compared AS (
  SELECT d.*, CASE WHEN d.likeness IS NULL THEN 1 ELSE count(*) OVER alike END AS alike,
    CASE WHEN d.likeness IS NULL THEN d.busbw_gbytes_per_s ELSE median(d.busbw_gbytes_per_s) OVER alike END AS usual_gbytes_per_s,
    CASE WHEN d.likeness IS NULL THEN d.busbw_gbytes_per_s ELSE max(d.busbw_gbytes_per_s) OVER alike END AS best_gbytes_per_s,
    CASE WHEN d.likeness IS NOT NULL THEN coalesce(
      lag(d.busbw_gbytes_per_s) OVER (PARTITION BY d.likeness, d.own_hosts, d.file_id ORDER BY d.run), e.reached)
    END AS before_gbytes_per_s
  FROM dated d
  ASOF LEFT JOIN ended e ON e.likeness = d.likeness AND e.own_hosts = d.own_hosts AND d.ran_from > e.ran_to
  WINDOW alike AS (PARTITION BY d.likeness)
)
SELECT * EXCLUDE (likeness, own_hosts, asked_nics), CASE
    WHEN wrong > 0 THEN 'wrong results'
    WHEN busbw_gbytes_per_s < expected_low_gbytes_per_s THEN 'below'
    WHEN dip_bytes >= 67108864 THEN 'unstable'
    WHEN alike > 1 AND busbw_gbytes_per_s < 0.9 * best_gbytes_per_s THEN 'slower than alike runs'
    WHEN busbw_gbytes_per_s < 0.9 * before_gbytes_per_s THEN 'slower than before'
    WHEN small_us > small_high_us THEN 'slow small messages'
    WHEN expected_low_gbytes_per_s IS NOT NULL OR small_us IS NOT NULL AND test LIKE 'ib_%_lat' OR alike > 1 THEN 'ok'
    ELSE 'not judged'
  END AS verdict,
  CASE WHEN verdict <> 'not judged' THEN NULL
    WHEN test LIKE 'ib_%_bw%' AND link_gbytes_per_s IS NULL AND hosts IS NULL
      THEN 'whose output it is: put it into a folder of its host, or --host-from; and ibstat of that host'
    WHEN test LIKE 'ib_%_bw%' AND link_gbytes_per_s IS NULL
      THEN 'ibstat, or /sys/class/infiniband, of ' || array_to_string(hosts, ' and ')
    WHEN test LIKE 'ib_%_bw%' THEN 'messages of 64 KiB or more'
    WHEN test LIKE 'ib_%_lat' THEN 'messages of 1 KiB or less on an InfiniBand or RoCE device'
    WHEN nodes IS NULL THEN 'the whole output, with the line `# Rank` of each rank'
    WHEN nodes = 1 THEN 'alike runs: no band is known of these GPUs'
    ELSE 'logs of NCCL_DEBUG=INFO, or ibstat of the hosts: they tell the NICs' END AS settled_by
FROM compared;
