-- question: Which NICs are not on the leaf that serves the NICs of their name?
-- A leaf serves a NIC's name if it has half as many of them as of the name it has most of, `$fewest_hosts` at least;
-- where the leaves of a rack serve all NICs, none is odd. `swapped` numbers two cables that are each on
-- the leaf of the other; `odd_nics` of the host's `nics` are odd: where most are, the host may number them otherwise.
WITH cables AS (
  SELECT owner AS host, part AS nic, far_owner AS leaf, far_part AS port,
    regexp_replace(part, '/\d+$', '') AS name
  FROM evidence.fabric_cables
  WHERE tier = 'host' AND far_tier <> 'host' AND regexp_matches(part, '\d') AND part NOT LIKE '%:%:%'
),
counted AS (
  SELECT leaf, name, count(*) AS hosts, max(count(*)) OVER (PARTITION BY leaf) AS most
  FROM cables GROUP BY leaf, name
),
served AS (
  SELECT leaf, name FROM counted WHERE hosts >= $fewest_hosts AND 2 * hosts >= most
),
-- Names that nearly always are where they are served.
names AS (
  SELECT c.name FROM cables c LEFT JOIN served s USING (leaf, name)
  GROUP BY c.name HAVING count(s.leaf) >= $agreement * count(*)
),
judged AS (
  SELECT c.*, n.hosts, n.most, s.leaf IS NULL AND 3 * n.hosts <= n.most AS odd
  FROM cables c JOIN counted n USING (leaf, name) SEMI JOIN names USING (name)
  LEFT JOIN served s USING (leaf, name)
),
own AS (
  SELECT *, count(*) OVER h AS nics, count(*) FILTER (odd) OVER h AS odd_nics,
    row_number() OVER (ORDER BY host, nic) AS number
  FROM judged WINDOW h AS (PARTITION BY host)
),
swaps AS (
  SELECT a.number AS a, b.number AS b, row_number() OVER (PARTITION BY a.number ORDER BY b.host <> a.host, b.number) AS choice
  FROM own a JOIN own b ON a.odd AND b.odd AND a.number <> b.number AND a.leaf <> b.leaf
  JOIN served s ON s.leaf = b.leaf AND s.name = a.name
  JOIN served t ON t.leaf = a.leaf AND t.name = b.name
)
SELECT o.host, o.nic, o.leaf, o.port, o.name, o.odd, o.odd_nics, o.nics, o.most AS leaf_hosts,
  (SELECT mode(x.name) FROM judged x WHERE x.leaf = o.leaf AND NOT x.odd) AS leaf_serves,
  least(s.a, s.b) AS swapped
FROM own o
LEFT JOIN (SELECT x.a, x.b FROM swaps x JOIN swaps y ON y.a = x.b AND y.b = x.a WHERE x.choice = 1 AND y.choice = 1) s ON s.a = o.number
ORDER BY o.host, o.nic
