-- question: Which host lost which peer: NCCL's completion errors and broken connections?
-- columns:
--   job          job
--   host         host that reports the error
--   peer_host    host at the other end; null where no log tells whose address it is
--   peer         the other end as NCCL prints it
--   nic          NIC the error is about
--   kind         completion_error, socket, connect_retry, ...
--   status       status of a completion error: 12 the peer did not answer
--   events       how often
--   first_seen   first of them, UTC; null where the log has no times
--   last_seen    last of them, UTC
-- example: fabricobs query failed_connections
--
-- An address is a host's if NCCL's bootstrap or out-of-band interface there has it, a completion
-- error names it as its own, or the host map says so.
SELECT e.job, e.host, coalesce(a.host, n.host) AS peer_host, e.peer, e.nic, e.kind, e.status,
  count(*) AS events, min(e.ts) AS first_seen, max(e.ts) AS last_seen
FROM nccl_events e
LEFT JOIN host_addresses a ON a.address = coalesce(
  split_part(e.peer, '<', 1), regexp_replace(e.remote_gid, '^::ffff:', '')
)
LEFT JOIN (SELECT DISTINCT host_name(host) AS host FROM nccl_ranks) n
  ON n.host = host_name(split_part(e.peer, '<', 1))
WHERE e.peer IS NOT NULL OR e.remote_gid IS NOT NULL
GROUP BY ALL
ORDER BY e.job, e.host, peer_host, e.peer, e.nic, e.kind, e.status;
