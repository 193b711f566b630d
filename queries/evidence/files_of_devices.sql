-- question: Which files show what of each device, which settings among it, until when?
SELECT f.device, f.path, string_split(f.formats, ',') AS formats, f.ts_last,
  coalesce(s.names, []) AS settings
FROM files f
LEFT JOIN (
  SELECT file_id, list(DISTINCT name) FILTER (name IS NOT NULL) AS names
  FROM settings
  GROUP BY file_id
) s USING (file_id)
WHERE f.device IS NOT NULL AND f."rows" > 0 AND f.pruned IS NULL
ORDER BY f.ts_last, f.path
