-- question: Which NICs do most hosts have and use, that a host has not, or has down all the time?
-- Each source of a host is compared with the same source of other hosts; a host of which a source
-- tells no other NIC is not judged.
WITH seen AS (
  SELECT DISTINCT coalesce(n.host, host_name(s.device)) AS host, s.format,
    coalesce(n.nic, split_part(s.port, '/', 1)) AS nic
  FROM named_status s
  JOIN nic_names n ON n.host = host_name(s.device) AND n.name = s.port
  WHERE s.oper IS DISTINCT FROM 'down'
),
asked AS (SELECT DISTINCT host, format FROM seen),
common AS (
  SELECT s.format, s.nic, count(*) AS with_nic, any_value(a.hosts) AS hosts
  FROM seen s JOIN (SELECT format, count(*) AS hosts FROM asked GROUP BY format) a USING (format)
  GROUP BY s.format, s.nic
)
SELECT a.host, c.nic, a.format, c.with_nic, c.hosts
FROM asked a JOIN common c USING (format)
ANTI JOIN seen s ON s.host = a.host AND s.format = a.format AND s.nic = c.nic
ORDER BY a.host, c.nic, a.format
