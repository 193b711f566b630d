-- question: How many NICs has the job, and of how many is known what they received?
-- A host has the NICs that logs name; where they name none, those its cables lead to.
WITH known AS (
  SELECT host, named, nic FROM nic_ends
  UNION
  SELECT host, named, nic FROM nic_ports
),
counted AS (
  SELECT k.host, k.named, count(DISTINCT k.nic) AS nics, count(DISTINCT b.nic) AS counted
  FROM known k LEFT JOIN (SELECT DISTINCT host, nic FROM nic_bytes) b ON b.host = k.host AND b.nic = k.nic
  GROUP BY k.host, k.named
),
hosts AS (
  SELECT host, arg_max(nics, named) AS nics, max(counted) AS counted FROM counted GROUP BY host
)
SELECT coalesce(sum(nics), 0)::BIGINT AS nics, coalesce(sum(least(nics, counted)), 0)::BIGINT AS counted
FROM hosts
