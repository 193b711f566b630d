-- question: Which operating system does each switch run, as its files tell it?
-- `system` is sonic, eos, nxos, cumulus or infiniband; a device whose files tell none, or several, is left out. `lid` is
-- its InfiniBand LID, null where no file tells it or several.
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
  UNION ALL
  SELECT device, CASE system WHEN 'NX-OS' THEN 'nxos' ELSE lower(system) END FROM configured_systems
  WHERE system IN ('EOS', 'NX-OS', 'SONiC', 'Cumulus')
),
lids AS (
  SELECT coalesce(n.device, l.device) AS device, max(l.lid) AS lid
  FROM (SELECT device, lid FROM links UNION SELECT device, lid FROM port_status) l
  LEFT JOIN device_names n ON n.id = l.device
  WHERE l.lid IS NOT NULL AND n.nic IS NULL
  GROUP BY 1 HAVING count(DISTINCT l.lid) = 1
)
SELECT device, any_value(system) AS system, any_value(l.lid) AS lid
FROM told LEFT JOIN lids l USING (device) ANTI JOIN known_hosts t ON t.host = host_name(told.device)
WHERE system IS NOT NULL
GROUP BY device
HAVING count(DISTINCT system) = 1
ORDER BY device
