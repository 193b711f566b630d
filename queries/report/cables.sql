-- question: Which parts of the fabric are joined by how many cables, and which of them train?
-- Cables of which only one port is told count too.
-- columns:
--   a         A host or switch
--   b         The one at the other end
--   a_trains  Whether the first is a host of a job
--   b_trains  Whether the other is
--   links     Cables between them
--   a_parts   Their ends at the first: owner and name, as far as told
--   b_parts   Their ends at the other
WITH one_sided AS (
  SELECT coalesce(p.owner, l.device) AS owner, coalesce(p.part, l.port) AS part,
    coalesce(t.host, l.remote_device) AS far_owner, NULL::VARCHAR AS far_part
  FROM canonical_links l
  LEFT JOIN port_parts p ON p.device = l.device AND p.port = l.port
  LEFT JOIN training_hosts t ON t.host = host_name(l.remote_device)
  WHERE l.remote_device IS NOT NULL
),
told AS (
  SELECT owner, part, far_owner, far_part FROM cable_ends
  UNION
  SELECT o.* FROM one_sided o ANTI JOIN cable_ends c ON c.owner = o.owner AND c.part = o.part
),
ordered AS (
  SELECT DISTINCT least(owner, far_owner) AS a, greatest(owner, far_owner) AS b,
    CASE WHEN owner < far_owner THEN part ELSE far_part END AS a_part,
    CASE WHEN owner < far_owner THEN far_part ELSE part END AS b_part
  FROM told
  WHERE owner <> far_owner
)
SELECT a, b,
  a IN (SELECT host FROM training_hosts) AS a_trains,
  b IN (SELECT host FROM training_hosts) AS b_trains,
  count(*) AS links,
  coalesce(list(a || ' ' || a_part ORDER BY a_part) FILTER (a_part IS NOT NULL), []) AS a_parts,
  coalesce(list(b || ' ' || b_part ORDER BY b_part) FILTER (b_part IS NOT NULL), []) AS b_parts
FROM ordered
GROUP BY a, b
ORDER BY a, b
