-- question: Which hosts are below each leaf?
SELECT DISTINCT l.device AS leaf, l.remote_device AS host
FROM links l SEMI JOIN training_hosts t ON l.remote_device = t.host
ORDER BY leaf, host
