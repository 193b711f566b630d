-- question: Which files show what of each device, until when?
SELECT device, path, string_split(formats, ',') AS formats, ts_last
FROM files
WHERE device IS NOT NULL AND "rows" > 0 AND pruned IS NULL
ORDER BY ts_last, path
