-- question: Which benchmark runs reach what they should?
-- columns:
--   path                        file of the run
--   run                         number of the run in its file
--   time                        when it ran: its output, else its path, else the last change of its file
--   test                        all_reduce_perf, ib_write_bw, ...
--   op                          collective; null of perftest
--   nranks                      ranks
--   nodes                       hosts it ran on
--   gpu                         product name of the GPUs
--   version                     version of the library
--   bytes                       largest message, bytes
--   busbw_gbytes_per_s          bus bandwidth with it, GB/s
--   limit_gbytes_per_s          what a host's NICs, or inside a host a GPU's links, can send, GB/s; NVLink SHARP reaches more
--   expected_low_gbytes_per_s   what sound sites reach at least, GB/s
--   expected_high_gbytes_per_s  at best, GB/s
--   alike                       runs of the same test, ranks, nodes, GPUs, library version and size, this one included
--   share_of_best               busbw_gbytes_per_s over that of the best of them
--   share_of_before             busbw_gbytes_per_s over that of the last earlier alike run on the same hosts
--   small_us                    time of its smallest AllReduce, or of its smallest message one way (perftest), us
--   small_high_us               usual time of it at most, us
--   dip_bytes                   largest message that took a quarter longer than a larger one, or than its repetition in place
--   wrong                       wrong elements
--   verdict                     wrong results, below, unstable, slower than alike runs, slower than before, slow small messages, ok, or not judged
--   settled_by                  what would let it be judged
-- example: fabricobs query acceptance
--
-- The first verdict that holds. `below` is against `expected_low_gbytes_per_s`; `unstable` is a dip from 64 MiB on;
-- `slower` means less than 0.9 of the best alike run, or of the run before. `ok` needs an expectation or an
-- alike run; a run with neither is not judged: logs of NCCL_DEBUG=INFO, or ibstat, tell its NICs. A run whose output
-- lacks the `# Rank` lines tells no hosts and is alike to none; runs that no time orders have none before. A finding
-- (`slow_part`) names the host, NIC or leaf that is in every slow run of a sweep.
SELECT path, run, ran_from AS time, test, op, nranks, nodes, gpu, version, bytes, busbw_gbytes_per_s, limit_gbytes_per_s,
  expected_low_gbytes_per_s, expected_high_gbytes_per_s, alike,
  CASE WHEN alike > 1 THEN busbw_gbytes_per_s / nullif(best_gbytes_per_s, 0) END AS share_of_best,
  busbw_gbytes_per_s / nullif(before_gbytes_per_s, 0) AS share_of_before,
  small_us, small_high_us, dip_bytes, wrong,
  verdict, settled_by
FROM benchmark_runs
ORDER BY path, run, test;
