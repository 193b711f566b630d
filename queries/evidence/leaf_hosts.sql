-- question: Which hosts are below each leaf?
SELECT DISTINCT l.device AS leaf, t.host
FROM named_links l JOIN training_hosts t ON host_name(l.remote_device) = t.host
WHERE NOT l.from_nic
ORDER BY leaf, host
