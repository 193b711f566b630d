-- question: Of how many hosts of the jobs is a kernel log there?
SELECT (SELECT count(DISTINCT host) FROM evidence.kernel_messages) AS told,
  (SELECT count(DISTINCT host) FROM job_ranks) AS hosts
