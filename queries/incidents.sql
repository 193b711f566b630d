-- question: Which incidents did the watch report, when did they begin, and are they over?
-- columns:
--   id           the fault: the same whenever it comes back
--   kind         diagnosis
--   severity     highest severity
--   began        start of the fault, UTC
--   noticed      first report, by the clock of the watch, UTC
--   resolved     when the watch found it over, UTC; null while it is open
--   loss_share   share of throughput lost, 0 to 1, at the last report
--   title        what wat the last report
-- example: fabricobs query incidents
--
-- An incident begins with `new` and ends with `resolved`; a fault that comes back is another one.
WITH told AS (
  SELECT *, count(*) FILTER (news = 'new') OVER (
    PARTITION BY id ORDER BY told, CASE news WHEN 'new' THEN 0 WHEN 'worse' THEN 1 ELSE 2 END
  ) AS occurrence
  FROM findings
  WHERE news IS NOT NULL
)
SELECT id, any_value(kind) AS kind,
  arg_max(severity, list_position(['info', 'low', 'medium', 'high', 'critical'], severity)) AS severity,
  min("start") AS began, min(told) AS noticed, max(told) FILTER (news = 'resolved') AS resolved,
  arg_max(loss_share, told) AS loss_share, arg_max(title, told) AS title
FROM told
GROUP BY id, occurrence
ORDER BY noticed, id
