-- question: How many NICs has the job, and of how many is known what they received?
SELECT count(DISTINCT (n.host, n.nic)) AS nics, count(DISTINCT (b.host, b.nic)) AS counted
FROM nic_ends n LEFT JOIN (SELECT DISTINCT host, nic FROM nic_bytes) b USING (host, nic)
