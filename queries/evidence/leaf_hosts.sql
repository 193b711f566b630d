-- question: Which hosts are below each leaf?
SELECT DISTINCT l.device AS leaf, t.host
FROM links l JOIN training_hosts t ON host_name(l.remote_device) = t.host
ORDER BY leaf, host
