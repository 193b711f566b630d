-- question: Which cables has the fabric, and is each end at a host, a leaf or a spine?
-- Each cable has a row from either end. A host trains, has RDMA devices, or has more ports called like those of
-- a NIC than like those of a switch. A leaf is a switch of whose cables the share `$host_share` goes to hosts; devices that go
-- by a GUID alone may be parts of switches (SHARP's aggregation nodes) and make none. Where most cables of leaves
-- to switches go to other leaves, `shape` is direct: dragonfly, torus or mesh.
WITH ends AS (
  SELECT owner, part, is_nic, far_owner, far_part, planned FROM cable_ends
  WHERE owner IS NOT NULL AND far_owner IS NOT NULL AND owner <> far_owner
  QUALIFY row_number() OVER (PARTITION BY owner, part ORDER BY planned, ts DESC NULLS LAST, far_owner, far_part) = 1
),
hosts AS (
  SELECT owner FROM ends GROUP BY owner
  HAVING bool_or(is_nic) OR 2 * count(*) FILTER (regexp_matches(part,
    '^(mlx|bnxt|roce|ib[ps]?\d|irdma|efa|hns|ionic|rdma|en[opsx]\w*\d|eth\d+$|HCA)|^([0-9A-Fa-f]{2}:){5}|^([0-9A-Fa-f]{4}\.){2}'
  )) > count(*)
  UNION SELECT host FROM training_hosts
),
leaves AS (
  SELECT e.owner FROM ends e LEFT JOIN hosts f ON f.owner = e.far_owner
  WHERE e.owner NOT IN (SELECT owner FROM hosts)
  GROUP BY e.owner
  HAVING count(f.owner) FILTER (e.far_owner NOT LIKE '0x%') >= $host_share * count(*)
),
tiers AS (
  SELECT DISTINCT e.owner, CASE WHEN h.owner IS NOT NULL THEN 'host' WHEN l.owner IS NOT NULL THEN 'leaf' ELSE 'spine' END AS tier
  FROM ends e LEFT JOIN hosts h USING (owner) LEFT JOIN leaves l USING (owner)
),
cables AS (
  SELECT e.owner, e.part, a.tier, e.far_owner, e.far_part, b.tier AS far_tier, e.planned
  FROM ends e JOIN tiers a ON a.owner = e.owner JOIN tiers b ON b.owner = e.far_owner
)
SELECT *, CASE
    WHEN count(*) FILTER (tier <> 'host' AND far_tier <> 'host') OVER () = 0 THEN 'no cables between switches'
    WHEN count(*) FILTER (tier = 'leaf' AND far_tier = 'leaf') OVER () > 2 * count(*) FILTER (tier = 'leaf' AND far_tier = 'spine') OVER ()
      THEN 'direct'
    WHEN count(*) FILTER (tier = 'leaf' AND far_tier = 'spine') OVER () = 0 THEN 'unknown'
    ELSE 'leaf-spine'
  END AS shape
FROM cables
ORDER BY owner, part
