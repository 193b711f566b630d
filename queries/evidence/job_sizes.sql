-- question: How many ranks has each job, as seen and as its largest communicator or rank says?
SELECT j.job, count(*) AS ranks,
  greatest(count(*), max(r.nranks), max(j.rank) + 1) AS ranks_expected
FROM job_ranks j
LEFT JOIN (SELECT job, max(nranks) AS nranks FROM ranks GROUP BY job) r
  ON r.job IS NOT DISTINCT FROM j.job
GROUP BY j.job
