-- question: Which hosts did the scheduler give to which jobs, and since when?
-- A row is a job as one capture shows it: all its hosts, those of the parts of a heterogeneous job (7702+0, 7702+1), too.
-- The launcher of an MPI job trains nothing: where its pod runs is no host of the job.
SELECT split_part(job_id, '+', 1) AS job_id, job_name, list_sort(list(DISTINCT host_name(host))) AS hosts,
  list_sort(list(DISTINCT host_name(task)) FILTER (task IS NOT NULL)) AS pods, min(start_time) AS begin, max(end_time) AS "end", max(ts) AS seen
FROM allocations
WHERE host IS NOT NULL AND coalesce(NOT regexp_matches(task, '-launcher(-[a-z0-9]+)?$'), true)
GROUP BY split_part(job_id, '+', 1), job_name, file_id, ts, CASE WHEN job_id IS NOT NULL THEN start_time END
ORDER BY ALL
