-- question: How many hosts has each job?
SELECT job, count(DISTINCT host) AS hosts FROM job_ranks WHERE host IS NOT NULL GROUP BY job
