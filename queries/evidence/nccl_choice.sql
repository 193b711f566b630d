-- question: What did NCCL choose in each process, and does it use GPUDirect?
-- `ranks` is how many ranks of the job the process has, `versions` what NCCL anywhere in the job is.
SELECT p.job, p.host, p.pid, coalesce(o.ranks, 1) AS ranks, p.network, t.versions, p.gdr, p.nodes
FROM nccl_processes p
LEFT JOIN (
  SELECT job, list_sort(list(DISTINCT split_part(version, '+', 1))) AS versions
  FROM nccl_ranks WHERE version IS NOT NULL GROUP BY job
) t ON t.job IS NOT DISTINCT FROM p.job
LEFT JOIN (SELECT job, host, pid, count(*) AS ranks FROM job_ranks GROUP BY job, host, pid) o
  ON o.job IS NOT DISTINCT FROM p.job AND o.host IS NOT DISTINCT FROM p.host AND o.pid = p.pid
ORDER BY p.job, p.host, p.pid
