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
SELECT formats AS format, count(*) AS files, sum(size_bytes)::BIGINT AS bytes,
  sum(lines)::BIGINT AS lines, sum(parsed)::BIGINT AS parsed, sum(ignored)::BIGINT AS ignored,
  sum(unparsed)::BIGINT AS unread, count(problem) AS problems
FROM files
GROUP BY formats
ORDER BY formats = '', formats
