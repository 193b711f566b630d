-- question: On which host, GPU, NIC and leaf port does each rank run?
-- columns:
--   job        Name of the job, empty if it has none
--   rank       Rank in the job
--   host       Its host
--   gpu        GPU of the host
--   nic        NIC it sends through
--   leaf       Switch at the other end of the cable
--   leaf_port  Its port
SELECT DISTINCT job, rank, host, gpu, nic, leaf, leaf_port
FROM rank_paths
ORDER BY job, rank, nic, leaf, leaf_port
