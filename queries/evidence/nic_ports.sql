-- question: Which leaf port is each NIC cabled to?
SELECT DISTINCT host, nic, leaf AS switch, leaf_port AS port
FROM rank_paths
WHERE host IS NOT NULL AND nic IS NOT NULL AND leaf IS NOT NULL
ORDER BY host, nic
