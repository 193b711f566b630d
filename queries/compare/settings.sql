-- question: What does NCCL say of one job: version, settings, and what it chose?
-- columns:
--   name   What
--   value  Its value
--   ranks  Ranks, or processes, that say so
WITH own AS (SELECT * FROM ranks WHERE job IS NOT DISTINCT FROM $job::VARCHAR),
said AS (
  SELECT 'NCCL version' AS name, version AS value, host, pid FROM own
  UNION ALL SELECT 'network', network, host, pid FROM own
  UNION ALL SELECT 'GPUDirect', CASE WHEN ring_gdr THEN 'on' ELSE 'off' END, host, pid FROM own
    WHERE ring_gdr IS NOT NULL
  UNION ALL SELECT 'collective channels', coll_channels::VARCHAR, host, pid FROM own
  UNION ALL SELECT 'point-to-point channels', p2p_channels::VARCHAR, host, pid FROM own
  UNION ALL SELECT 'ranks', max(nranks)::VARCHAR, host, pid FROM own GROUP BY host, pid
  UNION ALL SELECT 'hosts', max(nodes)::VARCHAR, host, pid FROM own GROUP BY host, pid
  UNION ALL SELECT 'transport', transport, host, pid FROM nccl_channels
    WHERE job IS NOT DISTINCT FROM $job::VARCHAR
  UNION ALL SELECT 'algorithm', algorithm, host, pid FROM nccl_calls
    WHERE job IS NOT DISTINCT FROM $job::VARCHAR
  UNION ALL SELECT 'protocol', protocol, host, pid FROM nccl_calls
    WHERE job IS NOT DISTINCT FROM $job::VARCHAR
  UNION ALL SELECT 'algorithm', algorithm, host, rank FROM collectives
    WHERE job IS NOT DISTINCT FROM $job::VARCHAR
  UNION ALL SELECT 'protocol', protocol, host, rank FROM collectives
    WHERE job IS NOT DISTINCT FROM $job::VARCHAR
  UNION ALL SELECT 'host', host, host, rank FROM job_ranks
    WHERE job IS NOT DISTINCT FROM $job::VARCHAR
  UNION ALL SELECT name, value, host, pid FROM nccl_env WHERE job IS NOT DISTINCT FROM $job::VARCHAR
)
SELECT name, value, count(DISTINCT (host, pid)) AS ranks
FROM said
WHERE value IS NOT NULL
GROUP BY name, value
ORDER BY name, value
