-- question: What was read, and what could not be?
-- columns:
--   format       formats a file showed, comma-separated; unrecognised if none
--   files        files
--   lines        lines; equals parsed + ignored + unparsed
--   parsed       lines that gave rows or context for one
--   ignored      lines the format knows and does not need
--   unparsed     lines nobody read
--   unclaimed    of those, lines that bear no format's mark
--   rows         rows written
--   first_time   earliest time of the rows, UTC; null where none is known
--   last_time    latest time, UTC
--   problems     files that could not be read to their end
-- example: fabricobs query what_was_ingested
--
-- A file with several formats counts once, in the row that names them all. Samples of the lines
-- nobody read are in the table `unparsed`; why a file has a problem is in `files`.
SELECT coalesce(nullif(formats, ''), 'unrecognised') AS format,
  count(*) AS files,
  sum(lines)::BIGINT AS lines,
  sum(parsed)::BIGINT AS parsed,
  sum(ignored)::BIGINT AS ignored,
  sum(unparsed)::BIGINT AS unparsed,
  sum(unclaimed)::BIGINT AS unclaimed,
  sum("rows")::BIGINT AS "rows",
  min(ts_first) AS first_time,
  max(ts_last) AS last_time,
  count(problem) AS problems
FROM files
GROUP BY coalesce(nullif(formats, ''), 'unrecognised')
ORDER BY format;
