-- question: Which incidents were told of and are not resolved, and to which severities did they rise?
-- columns:
--   id        the fault: the same whenever it comes back
--   severity  what it rose to
--   told      when the watch noticed, by its own clock, UTC
--   document  The whole finding as JSON, as it was then
WITH ended AS (SELECT id, max(told) AS at FROM findings WHERE news = 'resolved' GROUP BY id)
SELECT id, findings.severity, findings.told, findings.document
FROM findings LEFT JOIN ended USING (id)
WHERE findings.news IN ('new', 'worse') AND (ended.at IS NULL OR findings.told > ended.at)
ORDER BY id, findings.told
