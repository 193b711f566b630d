-- question: How many cables has each leaf to each spine, and how many have the leaves like it?
-- Leaves are alike if they share half of their spines; a spine is theirs if half of them reach it. A pair is judged where
-- one of the two tells its neighbours itself. `usual` is what the share `$agreement` of all pairs of those leaves have,
-- four at least; null: nothing is usual. `odd` is a pair that differs from it where most of the leaf's and of the spine's do not.
WITH asked AS (
  SELECT host_name(device) AS device FROM canonical_links WHERE format NOT IN ('ibqueryerrors', 'infiniband_exporter')
),
counts AS (
  SELECT owner AS leaf, far_owner AS spine, count(*) AS links
  FROM evidence.fabric_cables WHERE tier = 'leaf' AND far_tier = 'spine' AND shape = 'leaf-spine'
  GROUP BY owner, far_owner
),
sets AS (SELECT leaf, list_sort(list(spine)) AS spines FROM counts GROUP BY leaf),
alike AS (
  SELECT a.spines, b.spines AS others
  FROM (SELECT DISTINCT spines FROM sets) a, (SELECT DISTINCT spines FROM sets) b
  WHERE 2 * len(list_intersect(a.spines, b.spines)) >= len(list_distinct(list_concat(a.spines, b.spines)))
),
peers AS (
  SELECT a.spines, s.leaf, count(*) OVER (PARTITION BY a.spines) AS leaves FROM alike a JOIN sets s ON s.spines = a.others
),
common AS (
  SELECT p.spines, c.spine FROM peers p JOIN counts c USING (leaf)
  GROUP BY p.spines, c.spine HAVING 2 * count(*) >= any_value(p.leaves)
),
pairs AS (
  SELECT p.spines, p.leaf, c.spine, coalesce(n.links, 0) AS links
  FROM peers p JOIN common c USING (spines) LEFT JOIN counts n ON n.leaf = p.leaf AND n.spine = c.spine
  WHERE host_name(p.leaf) IN (SELECT device FROM asked) OR host_name(c.spine) IN (SELECT device FROM asked)
),
usual AS (
  SELECT spines, mode(links) AS usual, count(*) AS pairs FROM pairs GROUP BY spines
),
own AS (
  SELECT p.leaf, p.spine, p.links, u.pairs, u.usual, count(*) FILTER (p.links = u.usual) OVER g AS agreeing,
    s.leaf IS NOT NULL AS is_own, p.links <> u.usual AS differs,
    count(*) FILTER (p.links <> u.usual) OVER (PARTITION BY p.spines, p.leaf) AS of_leaf,
    count(*) OVER (PARTITION BY p.spines, p.leaf) AS leaf_pairs,
    count(*) FILTER (p.links <> u.usual) OVER (PARTITION BY p.spines, p.spine) AS of_spine,
    count(*) OVER (PARTITION BY p.spines, p.spine) AS spine_pairs
  FROM pairs p JOIN usual u USING (spines) LEFT JOIN sets s ON s.spines = p.spines AND s.leaf = p.leaf
  WINDOW g AS (PARTITION BY p.spines)
)
SELECT leaf, spine, links, agreeing, pairs,
  CASE WHEN pairs >= 4 AND agreeing >= $agreement * pairs THEN usual END AS usual,
  differs AND pairs >= 4 AND agreeing >= $agreement * pairs
    AND 2 * of_leaf <= leaf_pairs AND 2 * of_spine <= spine_pairs AS odd
FROM own WHERE is_own
ORDER BY leaf, spine
