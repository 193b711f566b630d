-- question: What did NCCL choose on each rank, and does it use GPUDirect?
WITH connections AS (
  SELECT job, host, pid,
    bool_and(gdr) FILTER (transport = 'NET') AS gdr
  FROM nccl_channels GROUP BY job, host, pid
),
chosen AS (
  SELECT w.job, w.rank, w.host, w.pid, any_value(r.network) AS network,
    any_value(r.version) AS version, bool_and(r.ring_gdr) AS ring_gdr, max(r.nodes) AS nodes
  FROM job_ranks w
  JOIN ranks r ON r.job IS NOT DISTINCT FROM w.job AND r.host = w.host AND r.pid = w.pid
  GROUP BY w.job, w.rank, w.host, w.pid
)
SELECT r.job, r.rank, r.host, r.network, r.version, coalesce(c.gdr, r.ring_gdr) AS gdr, r.nodes
FROM chosen r
LEFT JOIN connections c ON c.job IS NOT DISTINCT FROM r.job AND c.host = r.host AND c.pid = r.pid
ORDER BY r.job, r.rank
