-- question: On which GPU of its host does each rank run, by the number nvidia-smi gives it?
SELECT job, rank, host, gpu FROM job_ranks WHERE rank IS NOT NULL AND gpu IS NOT NULL
ORDER BY job, rank
