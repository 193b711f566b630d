-- question: How much of each format was read, and what stayed unread?
-- columns:
--   format    Formats the files showed, empty if none was recognised
--   files     Number of files
--   bytes     Size on disk, bytes
--   lines     Lines, or rows of binary formats
--   parsed    Lines that gave a row or context for one
--   ignored   Lines a format knows and does not need
--   unread    Lines nobody read
--   problems  Files that could not be read to their end
SELECT formats AS format, count(*) AS files,
  coalesce(sum(size_bytes), 0)::BIGINT AS bytes,
  coalesce(sum(lines), 0)::BIGINT AS lines,
  coalesce(sum(parsed), 0)::BIGINT AS parsed,
  coalesce(sum(ignored), 0)::BIGINT AS ignored,
  coalesce(sum(unparsed), 0)::BIGINT AS unread,
  count(problem) AS problems
FROM files
GROUP BY formats
ORDER BY formats = '', formats
