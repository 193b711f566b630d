-- question: What are the RDMA NICs of each host called?
SELECT host, nic FROM nic_names WHERE host IS NOT NULL AND nic IS NOT NULL
UNION
-- NCCL warns of RDMA devices by their names, though no log joins those to net devices.
SELECT host_name(host), nic FROM nccl_events WHERE host IS NOT NULL AND nic IS NOT NULL
ORDER BY host, nic
