-- question: Which processes ended by an error, where is it told, and which exit code had they?
-- columns:
--   job          job
--   ts           when, UTC; null where the log has no times
--   host         host
--   rank         rank
--   kind         exception, root_cause (the first a launcher saw), killed, stopped (a launcher was told to), out_of_memory
--   exception    type of the exception
--   exit_code    exit code; negative, or 128 and more: a signal
--   text         what it said
--   path         the input file
--   line         its line
-- example: fabricobs query failed_processes
SELECT e.job, e.ts, e.host, e.rank, e.kind, e.part AS exception, e.code AS exit_code, e.text, f.path, e.line
FROM events e
LEFT JOIN files f USING (file_id)
WHERE e.kind IN ('exception', 'root_cause', 'killed', 'stopped', 'out_of_memory')
ORDER BY e.ts NULLS LAST, f.path, e.line
