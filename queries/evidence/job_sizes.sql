-- question: How many ranks has each job, as seen and as its largest communicator says?
SELECT j.job, count(DISTINCT j.rank) AS ranks,
  greatest(count(DISTINCT j.rank), max(r.nranks)) AS ranks_expected
FROM job_ranks j
LEFT JOIN (SELECT job, max(nranks) AS nranks FROM ranks GROUP BY job) r
  ON r.job IS NOT DISTINCT FROM j.job
GROUP BY j.job
