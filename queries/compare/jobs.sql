-- question: Which jobs trained, as far as steps, collectives and NCCL's logs tell?
-- columns:
--   job  Name of the job, null if it has none
SELECT DISTINCT job FROM (
  SELECT job FROM steps UNION ALL SELECT job FROM collectives
  UNION ALL SELECT job FROM nccl_ranks UNION ALL SELECT job FROM nccl_env
)
ORDER BY job
