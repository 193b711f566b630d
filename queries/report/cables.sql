-- question: Which parts of the fabric are joined by how many cables, and which of them train?
-- columns:
--   a         A host or switch
--   b         The one at the other end
--   a_trains  Whether the first is a host of a job
--   b_trains  Whether the other is
--   links     Cables between them
--   a_parts   Their ends at the first: owner and name
--   b_parts   Their ends at the other
SELECT owner AS a, far_owner AS b,
  owner IN (SELECT host FROM training_hosts) AS a_trains,
  far_owner IN (SELECT host FROM training_hosts) AS b_trains,
  count(*) AS links,
  list(owner || ' ' || part ORDER BY part) AS a_parts,
  list(far_owner || ' ' || far_part ORDER BY part) AS b_parts
FROM cable_ends
WHERE owner < far_owner
GROUP BY owner, far_owner
ORDER BY owner, far_owner
