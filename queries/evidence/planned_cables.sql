-- question: Which cables of the plan do devices tell otherwise, or not at all?
-- `state` is as planned, elsewhere (a device names another peer), not seen (one of the two ends was asked, and does not
-- name it) or not asked. `seen` is what the end that is elsewhere is cabled to. `swapped` numbers two planned cables
-- each of whose first ends has the far end of the other.
WITH plan AS (
  SELECT DISTINCT coalesce(a.owner, l.device) AS owner, coalesce(a.part, l.port) AS part,
    coalesce(b.owner, l.remote_device) AS far_owner, coalesce(b.part, l.remote_port) AS far_part,
    coalesce(a.is_nic, false) AS is_nic, coalesce(b.is_nic, false) AS far_is_nic
  FROM stated_links l
  LEFT JOIN port_parts a ON a.device = l.device AND a.port = l.port
  LEFT JOIN port_parts b ON b.device = l.remote_device AND b.port = l.remote_port
  WHERE l.planned AND l.device IS NOT NULL AND l.port IS NOT NULL AND l.remote_device IS NOT NULL
),
-- A source that nothing names is no other device.
real AS (
  SELECT * FROM cable_ends WHERE NOT planned AND far_owner NOT LIKE 'unknown:%'
  QUALIFY row_number() OVER (PARTITION BY owner, part ORDER BY ts DESC NULLS LAST, far_owner, far_part) = 1
),
asked AS (SELECT DISTINCT host_name(device) AS device FROM stated_links WHERE NOT planned),
compared AS (
  SELECT p.*, row_number() OVER (ORDER BY p.owner, p.part) AS number,
    a.far_owner AS a_owner, a.far_part AS a_part, b.far_owner AS b_owner, b.far_part AS b_part,
    host_name(p.owner) IN (SELECT device FROM asked) OR host_name(p.far_owner) IN (SELECT device FROM asked) AS is_asked,
    -- An end without a port, or one whose NIC goes by an address, is the same if its device is.
    a.far_owner IS NOT NULL AND (host_name(a.far_owner) <> host_name(p.far_owner) OR (
      p.far_part IS NOT NULL AND a.far_part <> p.far_part AND a.far_is_nic = p.far_is_nic
      AND EXISTS (FROM real r WHERE r.owner = p.far_owner AND r.part = p.far_part))) AS a_elsewhere,
    b.far_owner IS NOT NULL AND host_name(b.far_owner) <> host_name(p.owner) AS b_elsewhere
  FROM plan p
  LEFT JOIN real a ON a.owner = p.owner AND a.part = p.part
  LEFT JOIN real b ON b.owner = p.far_owner AND b.part = p.far_part
)
SELECT c.owner, c.part, c.is_nic, c.far_owner, c.far_part, c.far_is_nic, CASE
    WHEN c.a_elsewhere OR c.b_elsewhere THEN 'elsewhere'
    WHEN c.a_owner IS NOT NULL OR c.b_owner IS NOT NULL THEN 'as planned'
    WHEN c.is_asked THEN 'not seen' ELSE 'not asked'
  END AS state,
  CASE WHEN c.a_elsewhere THEN format('{} {} is cabled to {} {}', c.owner, c.part, c.a_owner, c.a_part)
    WHEN c.b_elsewhere THEN format('{} {} is cabled to {} {}', c.far_owner, c.far_part, c.b_owner, c.b_part) END AS seen,
  least(c.number, s.number) AS swapped
FROM compared c
LEFT JOIN compared s ON c.a_elsewhere AND s.a_elsewhere AND s.number <> c.number
  AND host_name(s.far_owner) = host_name(c.a_owner) AND coalesce(s.far_part = c.a_part, true)
  AND host_name(c.far_owner) = host_name(s.a_owner) AND coalesce(c.far_part = s.a_part, true)
QUALIFY row_number() OVER (PARTITION BY c.number ORDER BY s.number) = 1
ORDER BY c.owner, c.part
