-- question: Which operating system does each switch run, as its files tell it?
-- `system` is sonic, eos, nxos, cumulus or infiniband; a device whose files tell none, or several, is left out.
WITH seen AS (
  SELECT DISTINCT device, format, regexp_matches(port, '^swp[0-9]') AS is_swp FROM port_samples
  UNION SELECT DISTINCT device, format, regexp_matches(port, '^swp[0-9]') FROM priority_samples
  UNION SELECT DISTINCT device, format, regexp_matches(port, '^swp[0-9]') FROM port_status
  UNION SELECT DISTINCT device, format, regexp_matches(port, '^swp[0-9]') FROM links
),
told AS (
  SELECT coalesce(n.device, s.device) AS device,
    CASE WHEN s.format LIKE 'sonic\_%' ESCAPE '\' THEN 'sonic'
      WHEN s.format LIKE 'eos\_%' ESCAPE '\' THEN 'eos'
      WHEN s.format LIKE 'nxos\_%' ESCAPE '\' THEN 'nxos'
      WHEN s.format LIKE 'nvue\_%' ESCAPE '\' OR s.is_swp THEN 'cumulus'
      WHEN regexp_matches(s.format, '^(ib(netdiscover|diagnet|queryerrors|linkinfo|swinfo|nodes)|perfquery|ufm_|infiniband_exporter)')
        THEN 'infiniband' END AS system
  FROM seen s LEFT JOIN device_names n ON n.id = s.device
  WHERE s.device IS NOT NULL AND n.nic IS NULL
)
SELECT device, any_value(system) AS system
FROM told ANTI JOIN known_hosts t ON t.host = host_name(told.device)
WHERE system IS NOT NULL
GROUP BY device
HAVING count(DISTINCT system) = 1
ORDER BY device
