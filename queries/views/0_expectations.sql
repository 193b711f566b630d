-- What collectives reach on sound hardware, each value with its source. A site that knows better puts a file
-- of this name into a content folder of its own.

-- Shares of the NICs' link rate that large messages reach over several hosts, by the rate of one NIC.
CREATE OR REPLACE TABLE expected_network_shares AS
SELECT * FROM (VALUES
  (0.0, 300.0, 0.70, 0.75, 0.95, 'HDR and Slingshot: 70 to 80 % is usual; 92 % in the public nccl-tests of Alps (boeschf/nccl-benchmark-on-alps-2025)'),
  (300.0, 1e9, 0.75, 0.80, 0.96, 'NDR: 75 to 85 % is usual; NCCL''s maintainers expect 46 to 48 of 50 GB/s (nccl-tests issue 290)')
) AS t(above_gbps, up_to_gbps, low_share, usual_share, high_share, source);

-- Bus bandwidth, GB/s, of large messages inside one host, by the name of its GPUs (a regular expression).
-- `limit_gbytes_per_s` is what one GPU can send; NVLS adds up in the switch and exceeds it.
CREATE OR REPLACE TABLE expected_nvlink AS
SELECT * FROM (VALUES
  ('A100-SXM4', 'any', 300.0, 215.0, 240.0, '12 NVLinks of 25 GB/s; 235 measured on 8 GPUs (nccl-tests issue 149 asks for it)'),
  ('H100 80GB HBM3|H200$|H20(-|$)', 'AllReduce', 450.0, 340.0, 485.0, 'Ring 370 after protocol overhead, NVLS 480 (nccl-tests issues 212, 290), 475 on H200 (272)'),
  ('H100 80GB HBM3|H200$|H20(-|$)', 'any', 450.0, 340.0, 380.0, '18 NVLinks of 25 GB/s; 370 after protocol overhead (nccl-tests issue 212)'),
  ('G?B200( |$)', 'AllReduce', 900.0, 660.0, 850.0, '18 NVLinks of 50 GB/s, 40 of them for data in NCCL''s model; NVLS 830 on 8 B200 (nccl issue 1807), 835 on 72 GB200'),
  ('G?B200( |$)', 'any', 900.0, 660.0, 722.0, '18 NVLinks of 50 GB/s, 40 of them for data in NCCL''s model (SM100_NVLINK_BW; nccl issue 1807)'),
  ('H800$', 'AllReduce', 200.0, 147.0, 220.0, '8 NVLinks of 25 GB/s; NVLS 215 (nccl issue 1374)'),
  ('H800$', 'any', 200.0, 147.0, 165.0, '8 NVLinks of 25 GB/s; 160 measured (DeepSeek-V3 issue 28)'),
  ('A800-SXM4', 'any', 200.0, 143.0, 160.0, '8 of the 12 NVLinks of an A100, in proportion to it; no measurement was found (UNVERIFIED)'),
  ('GH200 120GB', 'any', 450.0, 315.0, 345.0, '4 GPUs, 339 measured (boeschf/nccl-benchmark-on-alps-2025)'),
  ('MI300X', 'any', 448.0, 300.0, 336.0, '7 xGMI links of 64 GB/s, 48 of them usable (ROCm blog on RCCL and xGMI of MI300X)')
) AS t(gpu, op, limit_gbytes_per_s, low_gbytes_per_s, high_gbytes_per_s, source);

-- What perftest reaches between two sound ports, by its tests (a regular expression) and the rate of the slower port:
-- shares of the rate, from messages of `least_bytes` on; bidirectional tests add up both ways (`ways`). Reads wait for
-- answers: few queue pairs limit them.
CREATE OR REPLACE TABLE expected_perftest AS
SELECT * FROM (VALUES
  ('ib_(write|send)_bw', 1, 65536, 0.0, 300.0, 0.85, 0.985, 'NVIDIA passes from 90 % (ngc_multinode_perf), Azure from 170 of 200 Gb/s with GPU memory (azurehpc-health-checks); 97 to 98 of 100 Gb/s are usual (perftest issue 225)'),
  ('ib_(write|send)_bw', 1, 65536, 300.0, 1e9, 0.90, 0.985, 'NVIDIA passes from 90 % (ngc_multinode_perf), Azure from 380 of 400 Gb/s, and 393 are usual (azurehpc-health-checks)'),
  ('ib_read_bw', 1, 65536, 0.0, 1e9, 0.70, 0.985, 'As for writes; few queue pairs limit reads (perftest issue 252)'),
  ('ib_(write|send|read)_bw bidirectional', 2, 65536, 0.0, 1e9, 0.80, 0.985, 'NVIDIA passes from 90 % with several queue pairs (ngc_multinode_perf); one reaches less')
) AS t(test, ways, least_bytes, above_gbps, up_to_gbps, low_share, high_share, source);

-- Time of a small message by perftest, us, one way: 0.8 back to back, 1 to 2 in one fabric, of which a switch takes 0.1
-- (InfiniBand) to 0.6 (Ethernet); GPU memory and virtual machines add some. Ten times that is no property of a sound path.
CREATE OR REPLACE TABLE expected_perftest_latency AS
SELECT * FROM (VALUES
  ('ib_(write|send)_lat', 1024, 10.0, 'one way 0.8 us back to back (ib_send_lat), 0.1 to 0.6 us more for each switch (vendors'' data sheets); five times the usual 2 us'),
  ('ib_read_lat', 1024, 20.0, 'a read is a round trip: twice a write')
) AS t(test, up_to_bytes, high_us, source);

-- Time of one step of a protocol, us, as NCCL's own cost model has it (src/graph/tuning): what a call costs
-- before the first byte, and each hop inside a host and between hosts.
CREATE OR REPLACE TABLE expected_hops AS
SELECT * FROM (VALUES
  ('Tree', 'LL', 6.8, 0.6, 5.0), ('Ring', 'LL', 6.6, 0.6, 2.7), ('Ring', 'Simple', 8.4, 3.4, 14.0)
) AS t(algorithm, protocol, base_us, inside_us, between_us);

-- The bandwidth term rules where all hops of a ring take less than this share of the time of its bytes;
-- latency rules up to so many bytes, and is usual up to so many times NCCL's own estimate: 0.8 to 2.3 times
-- in public nccl-tests of A100, H100 and GH200.
CREATE OR REPLACE MACRO largest_hop_share() AS 0.25;
CREATE OR REPLACE MACRO most_latency_bytes() AS 4096;
CREATE OR REPLACE MACRO most_times_latency() AS 3.0;

-- What busbw is to the message size: bytes over a link, as nccl-tests define it. `bytes` is the whole message.
CREATE OR REPLACE MACRO bus_bytes(op, bytes, nranks) AS CASE
  WHEN op = 'AllReduce' THEN 2.0 * (nranks - 1) / nranks * bytes
  WHEN op IN ('AllGather', 'ReduceScatter', 'AlltoAll') THEN 1.0 * (nranks - 1) / nranks * bytes
  ELSE bytes END;

-- Time of all hops of a ring, us; k ranks on each of `nodes` hosts.
CREATE OR REPLACE MACRO ring_hops_us(op, nranks, nodes, ring) AS
  ring.base_us + CASE WHEN op = 'AllReduce' THEN 2 ELSE 1 END
    * ((nranks - nodes) * ring.inside_us + CASE WHEN nodes > 1 THEN nodes ELSE 0 END * ring.between_us);

-- Time of a small AllReduce, us: the faster of a double tree and a ring.
CREATE OR REPLACE MACRO small_message_us(nranks, nodes, tree, ring) AS least(
  tree.base_us + 2 * ((nranks / nodes - 1) * tree.inside_us + log2(nodes) * tree.between_us),
  ring.base_us + 2 * ((nranks - nodes) * ring.inside_us
    + CASE WHEN nodes > 1 THEN nodes ELSE 0 END * ring.between_us));

-- What to expect of collectives: `name` is a table or view with op, bytes (of the whole message), nranks,
-- nodes, link_gbytes_per_s (of one NIC), nics (of a host that the ranks can use) and gpu (its name). Its rows
-- come back with limit_gbytes_per_s (what the hardware allows), expected_low_gbytes_per_s and
-- expected_high_gbytes_per_s (bus bandwidth that sound sites reach with messages large enough),
-- expected_low_us and expected_high_us (time of small AllReduces), and expected_source. Null is unknown.
CREATE OR REPLACE MACRO with_expectations(name) AS TABLE
WITH constants AS (
  SELECT any_value(h) FILTER (algorithm = 'Tree') AS tree,
    any_value(h) FILTER (algorithm = 'Ring' AND protocol = 'LL') AS small_ring,
    any_value(h) FILTER (algorithm = 'Ring' AND protocol = 'Simple') AS ring
  FROM expected_hops h
),
limits AS (
  SELECT t.*, c.tree, c.small_ring, c.ring,
    CASE WHEN t.nodes > 1 THEN t.link_gbytes_per_s * CASE
        WHEN t.op = 'SendRecv' THEN 1
        WHEN t.op = 'AlltoAll' THEN 1.0 * t.nics * t.nodes / t.nranks * (t.nranks - 1) / (t.nranks - t.nranks / t.nodes)
        ELSE t.nics END
      ELSE v.limit_gbytes_per_s END AS rail_limit,
    -- Two hosts exchange a reduced half each in a tree: less crosses than in a ring.
    CASE WHEN t.nodes = 2 AND t.op = 'AllReduce' THEN 2.0 * (t.nranks - 1) / t.nranks ELSE 1 END AS tree_gain,
    CASE WHEN t.nodes > 1 THEN s.low_share ELSE v.low_gbytes_per_s / v.limit_gbytes_per_s END AS low_share,
    CASE WHEN t.nodes > 1 THEN s.high_share ELSE v.high_gbytes_per_s / v.limit_gbytes_per_s END AS high_share,
    CASE WHEN t.nodes > 1 THEN s.source ELSE v.source END AS expected_source
  FROM query_table(name) t
  CROSS JOIN constants c
  LEFT JOIN expected_network_shares s
    ON t.link_gbytes_per_s * 8 > s.above_gbps AND t.link_gbytes_per_s * 8 <= s.up_to_gbps
  LEFT JOIN expected_nvlink v
    ON t.nodes = 1 AND t.nranks > 2 AND regexp_matches(t.gpu, v.gpu) AND t.gpu NOT LIKE '%, %'
      AND (v.op = t.op OR (v.op = 'any' AND NOT EXISTS (
        SELECT 1 FROM expected_nvlink o WHERE o.gpu = v.gpu AND o.op = t.op)))
),
sizes AS (
  SELECT *, bus_bytes(op, bytes, nranks) / (rail_limit * 1000) AS bytes_us,
    ring_hops_us(op, nranks, nodes, ring) AS hops_us,
    CASE WHEN op = 'AllReduce' AND bytes <= most_latency_bytes() AND nranks > 1
      THEN small_message_us(nranks, nodes, tree, small_ring) END AS small_us
  FROM limits
)
SELECT * EXCLUDE (tree, small_ring, ring, rail_limit, tree_gain, low_share, high_share, bytes_us, hops_us, small_us,
    expected_source),
  rail_limit * tree_gain AS limit_gbytes_per_s,
  CASE WHEN hops_us <= largest_hop_share() * bytes_us
    THEN rail_limit / (1 / low_share + hops_us / bytes_us) END AS expected_low_gbytes_per_s,
  CASE WHEN hops_us <= largest_hop_share() * bytes_us THEN rail_limit * tree_gain * high_share END
    AS expected_high_gbytes_per_s,
  small_us / 2 AS expected_low_us, small_us * most_times_latency() AS expected_high_us,
  CASE WHEN hops_us <= largest_hop_share() * bytes_us THEN expected_source
    WHEN small_us IS NOT NULL THEN 'NCCL''s own cost model (src/graph/tuning)' END AS expected_source
FROM sizes;
