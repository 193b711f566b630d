-- question: Which host, NIC or leaf is in every slow run of a sweep of benchmarks?
-- A run is as slow as its slowest part. So the part is sought whose runs differ most from all others (Welch's t, with the
-- median of the others, on the logarithm of bus bandwidth over that of alike runs); its runs tell nothing more of other
-- parts and are left out; then the next is sought. A row is a part that was accused, in this order: `effect` is the share
-- of bandwidth its runs lack (median), `t` its distance, `high_share` what four of five of its runs stay below, `ratio` the
-- likelihood of the next best part over its own: where it is near 1 they cannot be told apart. `own_runs` are its runs.
-- `same` is one for three hosts and more that lack about as much: of a leaf that no log tells, or a rack.
-- Of hosts with the same leaves that are slow together each has a row. Of a NIC (a rail) all hosts' NICs of that
-- name are meant. Parts in all runs, or in fewer than three, show nothing.
WITH RECURSIVE shares AS (
  SELECT row_number() OVER (ORDER BY path, run, test) AS run, {'path': path, 'run': run, 'test': test} AS key, hosts, nics, ln(busbw_gbytes_per_s / usual_gbytes_per_s) AS y
  FROM benchmark_runs
  WHERE alike >= $fewest_runs AND busbw_gbytes_per_s > 0 AND hosts IS NOT NULL
),
-- One run far off must not hide three that are a little slow: it counts as much as six times what runs vary by.
spread AS (SELECT 6 * greatest(1.4826 * mad(y), 0.01) AS most FROM shares),
observed AS MATERIALIZED (
  SELECT s.*, greatest(-most, least(most, y)) AS clipped FROM shares s CROSS JOIN spread
),
leaves AS (
  SELECT far_owner AS host, far_part AS nic, owner AS leaf FROM cable_ends WHERE far_is_nic AND NOT is_nic
  UNION
  SELECT host_name(host), nic, switch FROM host_map WHERE switch IS NOT NULL
),
of_hosts AS (
  SELECT run, unnest(hosts) AS host, nics FROM observed
),
-- Hosts with the same leaves, several of them: what is slow of all of them no single leaf of a rail shows.
units AS (
  SELECT host, string_agg(DISTINCT leaf, ', ' ORDER BY leaf) AS unit
  FROM leaves SEMI JOIN of_hosts USING (host)
  GROUP BY host HAVING count(DISTINCT leaf) > 1
  QUALIFY count(*) OVER (PARTITION BY unit) >= 3
),
parts AS MATERIALIZED (
  SELECT DISTINCT run, 'host' AS type, host AS part FROM of_hosts
  UNION
  SELECT h.run, 'unit', u.unit FROM of_hosts h JOIN units u USING (host)
  UNION
  SELECT run, 'nic', unnest(nics) FROM observed
  UNION
  SELECT h.run, 'switch', l.leaf FROM of_hosts h JOIN leaves l ON l.host = h.host
    AND (h.nics IS NULL OR l.nic IS NULL OR list_contains(h.nics, l.nic))
),
accused AS (
  SELECT 0 AS place, []::BIGINT[] AS gone, NULL::VARCHAR AS type, NULL::VARCHAR AS part, NULL::DOUBLE AS effect,
    NULL::DOUBLE AS t, NULL::DOUBLE AS high_share, NULL::DOUBLE AS ratio, []::BIGINT[] AS own, 0::BIGINT AS others
  UNION ALL
  SELECT * FROM (
    WITH left_runs AS (
      SELECT a.place, a.gone, o.run, o.y, o.clipped FROM accused a JOIN observed o ON NOT list_contains(a.gone, o.run)
      WHERE a.place < $most_parts
    ),
    candidates AS (
      SELECT DISTINCT p.type, p.part FROM parts p JOIN left_runs l USING (run)
    ),
    split AS (
      SELECT c.type, c.part, l.place, l.gone, l.run, l.y, l.clipped, p.run IS NOT NULL AS has
      FROM candidates c CROSS JOIN left_runs l
      LEFT JOIN parts p ON p.type = c.type AND p.part = c.part AND p.run = l.run
    ),
    tested AS (
      SELECT type, part, any_value(place) AS place, any_value(gone) AS gone,
        list(run) FILTER (has) AS own, count(*) FILTER (has) AS n1, count(*) FILTER (NOT has) AS n0,
        median(y) FILTER (has) AS m1, median(y) FILTER (NOT has) AS m0,
        quantile_cont(y, 0.8) FILTER (has) AS high,
        -- Of the runs without it the median and its spread: some are slow for other reasons. Those with it vary as much at least.
        greatest(pow(1.4826 * mad(y) FILTER (NOT has), 2), 1e-6) AS v0,
        (median(y) FILTER (NOT has) - avg(clipped) FILTER (has))
          / sqrt(greatest(var_samp(clipped) FILTER (has), v0) / count(*) FILTER (has) + v0 / count(*) FILTER (NOT has)) AS t,
        var_pop(clipped) FILTER (has) * count(*) FILTER (has) + var_pop(clipped) FILTER (NOT has) * count(*) FILTER (NOT has) AS rest, count(*) AS n
      FROM split GROUP BY type, part
      HAVING count(*) FILTER (has) >= 3 AND count(*) FILTER (NOT has) >= 3
    ),
    -- Parts whose runs are few and far off by chance, some of them, explain nothing: the next is asked.
    ordered AS (
      SELECT * FROM (SELECT *, (lead(rest) OVER (ORDER BY rest, type, part) / greatest(rest, 1e-12)) AS next_rest FROM tested WHERE m0 > m1)
      WHERE t > $t AND 1 - exp(m1 - m0) >= $effect AND m0 - high >= 0.4 * (m0 - m1)
      QUALIFY row_number() OVER (ORDER BY rest, type, part) = 1
    )
    SELECT place + 1, list_concat(gone, own), type, part, 1 - exp(m1 - m0), t, 1 - exp(high - m0),
      pow(next_rest, -n / 2.0), own, n0
    FROM ordered
  )
),
hosts AS (
  SELECT count(*) >= 3 AND max(effect) <= 1.5 * min(effect) AS are_alike FROM accused WHERE type = 'host'
)
SELECT CASE WHEN a.type = 'unit' THEN 'host' ELSE a.type END AS type,
  CASE WHEN a.type = 'host' AND h.are_alike THEN 'hosts' ELSE concat_ws(' ', a.type, a.part) END AS same,
  CASE WHEN a.type = 'unit' THEN u.host WHEN a.type = 'host' THEN a.part END AS host, CASE WHEN a.type = 'nic' THEN a.part END AS nic,
  CASE WHEN a.type = 'switch' THEN a.part END AS switch,
  a.place, a.effect, a.t, a.high_share, coalesce(a.ratio, 0) AS ratio, len(a.own) AS runs, a.others,
  (SELECT list(o.key ORDER BY o.run) FROM observed o WHERE list_contains(a.own, o.run)) AS own_runs,
  (SELECT count(*) FROM observed) AS judged_runs, (SELECT count(DISTINCT (type, part)) FROM parts) AS judged_parts
FROM accused a CROSS JOIN hosts h LEFT JOIN units u ON a.type = 'unit' AND u.unit = a.part
WHERE a.place > 0
ORDER BY a.place, host
