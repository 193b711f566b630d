-- question: What share of the NICs' link rate do the collectives reach, and is that normal?
-- columns:
--   job                         job
--   op                          AllReduce, AllGather or ReduceScatter
--   nranks                      ranks of the communicator
--   nodes                       hosts of the communicator; 1: it stays on NVLink or PCIe
--   size_class                  largest power of two not above the message size, bytes
--   calls                       calls
--   busbw_p50_gbytes_per_s      median bus bandwidth, GB/s
--   busbw_p95_gbytes_per_s      95th percentile, GB/s
--   link_rate_gbytes_per_s      link rate of one NIC, GB/s
--   nics                        NICs of a host that its ranks of the communicator can use
--   link_share                  busbw_p50_gbytes_per_s over link_rate_gbytes_per_s times nics
--   limit_gbytes_per_s          what a host's NICs, or inside a host a GPU's links, can send, GB/s; NVLink SHARP reaches more
--   expected_low_gbytes_per_s   what sound sites reach with messages so large at least, GB/s
--   expected_high_gbytes_per_s  at best, GB/s
--   time_p50_us                 median time of the transfer, us
--   expected_high_us            usual time of a small AllReduce at most, us
--   assessment                  below, usual, or above what the hardware allows
--   source                      where the expectation is from
-- example: fabricobs query bus_bandwidth
--
-- Bandwidth of the rank that arrived last: the others' time includes waiting for it. Large messages are
-- judged by bandwidth, AllReduces up to 4 KiB by time; those between depend on the algorithm and have no
-- expectation. In a training job several collectives share the NICs, and computation slows their kernels:
-- `below` is normal there where they overlap. Inside one host the NVLinks of the model that nvidia-smi or DCGM tells
-- count; NVLink SHARP lets an AllReduce exceed their limit. `above` means that NICs are missing in the logs, that NVLink
-- connects the hosts, or that switches reduce (SHARP). `nics` counts the NICs in use, at most one a rank;
-- ranks of other communicators on the host use the rest. Null is unknown. `queries/views/0_expectations.sql` holds the expectations.
SELECT job, op, nranks, nodes, size_class, calls, busbw_p50_gbytes_per_s, busbw_p95_gbytes_per_s,
  link_gbytes_per_s AS link_rate_gbytes_per_s, nics,
  busbw_p50_gbytes_per_s / (link_gbytes_per_s * nics) AS link_share, limit_gbytes_per_s,
  expected_low_gbytes_per_s, expected_high_gbytes_per_s, pure_p50_us AS time_p50_us, expected_high_us,
  CASE WHEN busbw_p50_gbytes_per_s > greatest(limit_gbytes_per_s, expected_high_gbytes_per_s) THEN 'above'
    WHEN busbw_p50_gbytes_per_s < expected_low_gbytes_per_s OR pure_p50_us > expected_high_us THEN 'below'
    WHEN coalesce(expected_low_gbytes_per_s, expected_high_us) IS NOT NULL THEN 'usual' END AS assessment,
  expected_source AS source
FROM with_expectations('collective_classes')
ORDER BY job, op, nranks DESC, nodes, size_class;
