-- question: How fast were the runs of a sweep of benchmarks with a host, NIC or leaf, and those without it?
-- columns:
--   path   file of the run
--   run    number of the run in its file
--   test   all_reduce_perf, ib_write_bw, ...
--   hosts  hosts, the first of them
--   busbw  bus bandwidth of its largest message, GB/s
--   share  over the median of alike runs
--   own    whether the part took part
WITH leaves AS (
  SELECT far_owner AS host, far_part AS nic FROM cable_ends WHERE owner = $switch AND far_is_nic AND NOT is_nic
  UNION
  SELECT host_name(host), nic FROM host_map WHERE switch = $switch
)
SELECT path, run, test,
  array_to_string(hosts[:4], ', ') || CASE WHEN len(hosts) > 4 THEN format(' and {} more', len(hosts) - 4) ELSE '' END AS hosts,
  busbw_gbytes_per_s AS busbw, busbw_gbytes_per_s / usual_gbytes_per_s AS share,
  CASE
    WHEN $host IS NOT NULL THEN list_contains(hosts, $host)
    WHEN $nic IS NOT NULL THEN list_contains(nics, $nic)
    ELSE EXISTS (
      FROM leaves l WHERE list_contains(r.hosts, l.host)
        AND (r.nics IS NULL OR l.nic IS NULL OR list_contains(r.nics, l.nic)))
  END AS own
FROM benchmark_runs r
WHERE alike > 1 AND busbw_gbytes_per_s > 0 AND hosts IS NOT NULL
ORDER BY share, path, run, test
