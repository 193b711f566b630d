-- question: Which jobs have steps or measured collectives?
-- columns:
--   job  Name of the job, null if it has none
SELECT DISTINCT job FROM (SELECT job FROM steps UNION ALL SELECT job FROM collectives) ORDER BY job
