-- question: How many ports to NICs of each switch protect a class from drops, as last told?
SELECT t.owner AS switch, count(*) AS ports, count(*) FILTER (t.classes = 'none') AS lossy,
  string_agg(DISTINCT t.classes, ' ' ORDER BY t.classes) FILTER (t.classes <> 'none') AS classes
FROM protecting_ports t LEFT JOIN cable_ends e ON e.owner = t.owner AND e.part = t.part
WHERE e.far_is_nic OR e.far_is_nic IS NULL
GROUP BY t.owner
ORDER BY t.owner
