-- question: Which cables are not where those of the other hosts and leaves, or the plan, have them?
-- `place` joins the cables of one fault: two that are swapped, those of one leaf, those of one host. What the plan says
-- decides: rails and parallel links that are as planned are no fault.
WITH plan AS (
  SELECT *, 'plan ' || coalesce(swapped::VARCHAR, owner || ' ' || part) AS place,
    count(swapped) OVER (PARTITION BY swapped) AS pair
  FROM evidence.planned_cables
),
rails AS (
  SELECT *, CASE WHEN 2 * odd_nics > nics AND nics > 2 THEN 'host ' || host
      ELSE 'rail ' || coalesce(swapped::VARCHAR, host || ' ' || nic) END AS place
  FROM evidence.rail_cables r
  -- A host all of whose NICs are odd is one of another kind, unless it is swapped.
  WHERE odd AND (odd_nics < nics OR swapped IS NOT NULL OR nics > 2) AND NOT EXISTS (
    FROM plan p WHERE p.state IN ('as planned', 'elsewhere')
      AND ((p.owner = r.host AND p.part = r.nic) OR (p.far_owner = r.host AND p.far_part = r.nic))
  )
),
ends AS (
  SELECT place, CASE WHEN pair > 1 THEN 'planned cables are swapped' WHEN state = 'elsewhere' THEN 'not as planned'
      ELSE 'planned and not seen' END AS fault,
    is_nic, owner, part, far_owner, far_part, far_is_nic,
    format('{} {}', far_owner, coalesce(far_part, '')) AS far,
    CASE WHEN state = 'elsewhere' THEN format('{}; the plan says {} {}', seen, far_owner, coalesce(far_part, ''))
      ELSE format('{} {} to {} {} is planned, and no end names the other', owner, part, far_owner, coalesce(far_part, '')) END AS sentence
  FROM plan WHERE state IN ('elsewhere', 'not seen')
  UNION ALL
  SELECT place, CASE WHEN place LIKE 'host %' THEN 'other numbers' WHEN swapped IS NULL THEN 'other rail' ELSE 'rails are swapped' END,
    true, host, nic, leaf, port, false, leaf || ' ' || port,
    format('{} {} is cabled to {} {}, which serves {} of the other hosts', host, nic, leaf, port, leaf_serves)
  FROM rails
),
cables AS (
  SELECT place, any_value(fault) AS fault,
    list({'type': CASE WHEN is_nic THEN 'nic' ELSE 'port' END, 'host': CASE WHEN is_nic THEN owner END, 'nic': CASE WHEN is_nic THEN part END,
      'switch': CASE WHEN NOT is_nic THEN owner END, 'port': CASE WHEN NOT is_nic THEN part END} ORDER BY owner, part) AS entities,
    list({'type': CASE WHEN far_is_nic THEN 'nic' ELSE 'port' END, 'host': CASE WHEN far_is_nic THEN far_owner END, 'nic': CASE WHEN far_is_nic THEN far_part END,
      'switch': CASE WHEN NOT far_is_nic THEN far_owner END, 'port': CASE WHEN NOT far_is_nic THEN far_part END} ORDER BY owner, part) AS related,
    list(owner || ' ' || part ORDER BY owner, part) AS names, list(far ORDER BY owner, part) AS far_names,
    list(sentence ORDER BY owner, part) AS sentences, any_value(owner) AS first_owner
  FROM ends GROUP BY place
),
links AS (
  SELECT leaf, list(spine ORDER BY spine) AS spines, list(format('{} to {}', CASE links WHEN 0 THEN 'no link' WHEN 1 THEN '1 link' ELSE links || ' links' END, spine) ORDER BY spine) AS counts,
    any_value(usual) AS usual, any_value(agreeing) AS agreeing, any_value(pairs) AS pairs, bool_or(links < usual) AS fewer
  FROM evidence.parallel_links l
  WHERE odd AND links IS DISTINCT FROM (
    SELECT nullif(count(*), 0) FROM plan p
    WHERE p.state <> 'not asked' AND (l.leaf, l.spine) IN ((p.owner, p.far_owner), (p.far_owner, p.owner))
  )
  GROUP BY leaf
)
SELECT c.place, c.fault, c.entities, c.related, CASE c.fault
    WHEN 'rails are swapped' THEN format('{} and {} are cabled to the rails of each other: {} and {}', c.names[1], c.names[2], c.far_names[1], c.far_names[2])
    WHEN 'planned cables are swapped' THEN format('The cables of {} and {} are swapped', c.names[1], c.names[2])
    WHEN 'other rail' THEN format('{} is cabled to {}, the leaf of another rail', c.names[1], c.far_names[1])
    WHEN 'other numbers' THEN format('{} NICs of {} are on the rails of others', len(c.names), c.first_owner)
    WHEN 'not as planned' THEN format('{} is not cabled to {} as planned', c.names[1], c.far_names[1])
    ELSE format('The planned cable of {} to {} is not seen', c.names[1], c.far_names[1])
  END AS said, array_to_string(c.sentences[:4], '. ') AS sentence, c.names[1] AS near, c.far_names[1] AS far,
  NULL::BIGINT AS usual, c.fault NOT IN ('other numbers', 'planned and not seen') AS counts
FROM cables c
UNION ALL
SELECT 'links ' || leaf, CASE WHEN fewer THEN 'missing links' ELSE 'more links' END,
  list_concat([{'type': 'switch', 'host': NULL, 'nic': NULL, 'switch': leaf, 'port': NULL}], [
    {'type': 'switch', 'host': NULL, 'nic': NULL, 'switch': s, 'port': NULL} FOR s IN spines]), [],
  format('{} has {} where {} are usual', leaf, array_to_string(counts[:3], ', '), usual),
  format('{} of {} pairs of leaves and spines alike have {} links', agreeing, pairs, usual), leaf, spines[1], usual, fewer
FROM links
ORDER BY place
