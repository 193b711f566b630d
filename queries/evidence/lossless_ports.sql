-- question: How many ports to NICs of each switch protect a class from drops, as last told?
WITH told AS (
  SELECT coalesce(p.owner, s.device) AS owner, coalesce(p.part, s.port) AS part,
    arg_max(s.value, coalesce(s.ts, '1970-01-01'::TIMESTAMP)) AS classes
  FROM switch_settings s LEFT JOIN port_parts p USING (device, port)
  WHERE s.name = 'lossless_priorities' AND regexp_full_match(s.value, 'none|\d(,\d)*')
  GROUP BY ALL
)
SELECT t.owner AS switch, count(*) AS ports, count(*) FILTER (t.classes = 'none') AS lossy,
  string_agg(DISTINCT t.classes, ' ' ORDER BY t.classes) FILTER (t.classes <> 'none') AS classes
FROM told t LEFT JOIN cable_ends e ON e.owner = t.owner AND e.part = t.part
WHERE e.far_is_nic OR e.far_is_nic IS NULL
GROUP BY t.owner
ORDER BY t.owner
