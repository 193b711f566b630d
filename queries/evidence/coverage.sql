-- question: What is in the store?
SELECT
  (SELECT count(*) FROM files) AS files,
  (SELECT count(*) FROM files WHERE formats = '') AS unrecognised_files,
  rowless.files AS rowless_files, rowless.formats AS rowless_formats,
  (SELECT count(*) FROM files WHERE problem IS NOT NULL) AS broken_files,
  (SELECT coalesce(sum(lines), 0) FROM files) AS lines,
  (SELECT coalesce(sum(unparsed - unclaimed), 0) FROM files) AS unread_lines,
  (SELECT coalesce(sum(unclaimed), 0) FROM files) AS unclaimed_lines,
  greatest(seen.ranks, told.ranks) AS ranks,
  greatest(seen.ranks, seen.nranks, told.nranks) AS ranks_expected,
  greatest((SELECT count(DISTINCT host) FROM job_ranks), told.hosts) AS hosts,
  (SELECT count(DISTINCT (job, step)) FROM step_times WHERE source NOT LIKE 'collective%') AS steps,
  (SELECT count(*) FROM steps_by_rhythm) AS steps_timed_by_collectives,
  (SELECT count(*) FROM collectives) AS collectives,
  (SELECT count(DISTINCT (device, port)) FROM port_samples) AS ports,
  (SELECT count(DISTINCT device) FROM port_samples) AS devices,
  (SELECT median(seconds) FROM port_rates) AS interval_seconds,
  (SELECT count(*) FROM named_links) AS cables,
  (SELECT count(*) FROM nccl_channels) AS connections,
  (SELECT count(*) FROM priority_samples) AS priority_samples,
  (SELECT count(*) FROM port_rates WHERE gap) AS gaps,
  times.first_time, times.last_time, times.measured_from
FROM (
  SELECT coalesce(sum(ranks), 0)::BIGINT AS ranks, coalesce(sum(nranks), 0)::BIGINT AS nranks
  FROM (
    SELECT max(r.ranks) AS ranks, max(n.nranks) AS nranks
    FROM (SELECT job, count(*) AS ranks FROM job_ranks GROUP BY job) r
    FULL JOIN (SELECT job, max(nranks) AS nranks FROM ranks GROUP BY job) n ON n.job IS NOT DISTINCT FROM r.job
    LEFT JOIN jobs j ON j.job = coalesce(r.job, n.job)
    GROUP BY coalesce(j.name, r.job, n.job)
  )
) seen,
(
  -- Runs of one job have the same ranks.
  SELECT sum(ranks)::BIGINT AS ranks, sum(nranks)::BIGINT AS nranks, sum(hosts)::BIGINT AS hosts
  FROM (SELECT max(ranks) AS ranks, max(nranks) AS nranks, max(hosts) AS hosts FROM jobs GROUP BY name)
) told,
(
  SELECT count(*) AS files, string_agg(DISTINCT formats, '; ' ORDER BY formats) AS formats FROM files
  WHERE formats <> '' AND parsed = 0 AND unparsed > 0
) rowless,
(
  -- Kernel logs reach back to the start of a host, long before what is measured.
  SELECT min(ts) AS first_time, max(ts) AS last_time, min(ts) FILTER (measured) AS measured_from
  FROM (
    SELECT ts, ts_source, true AS measured FROM steps
    UNION ALL SELECT ts, ts_source, true FROM collectives
    UNION ALL SELECT ts, ts_source, false FROM nccl_events
    UNION ALL SELECT ts, ts_source, false FROM events
    UNION ALL SELECT ts, ts_source, true FROM port_samples
  )
  WHERE coalesce(ts_source, '') NOT IN ('mtime', 'none')
) times
