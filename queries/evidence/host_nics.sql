-- question: What are the RDMA NICs of each host called?
SELECT DISTINCT host, nic FROM nic_names WHERE host IS NOT NULL AND nic IS NOT NULL ORDER BY host, nic
