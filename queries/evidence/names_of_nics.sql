-- question: By which names do logs know each NIC of a host?
SELECT DISTINCT host, nic, name FROM nic_ends WHERE name IS NOT NULL
ORDER BY host, nic, name
