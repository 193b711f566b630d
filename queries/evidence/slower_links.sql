-- question: Which ports, NICs and PCIe devices run below what their peers do, or are missing?
-- A row is an end of a cable one end of which is slow, a NIC that most hosts have up and this one has not,
-- or a PCIe device that few hosts train down: `what` most hosts do is how they are built. A role has a usual
-- speed with `$peers` ports of which the share `$agreeing`, or all but one, have it. A port that ran faster
-- before needs no others: it became slow between `ts_before` (`sound_at`) and `begun_by`, and until `ended` where it is over;
-- another one for the whole run, and so is one that was as slow when the job began. One NIC and one port without a known
-- cable that are as slow are its two ends.
WITH speeds AS (
  SELECT * REPLACE (coalesce(usual_gbps, first_gbps) AS usual_gbps),
    peers >= $peers AND nearly_all(agreeing, peers, $agreeing) AS has_usual,
    faster_until IS NOT NULL AND first_gbps > speed_gbps AS fell
  FROM evidence.port_speeds
),
below AS (
  SELECT s.* FROM speeds s
  -- Read before the job began: what NCCL read then at the other end holds for both.
  ANTI JOIN speeds f ON f.owner = s.far_owner AND f.part = s.far_part
    AND f.started > s.read_at AND f.started_gbps > s.speed_gbps AND f.speed_gbps > s.speed_gbps
  WHERE s.could_be IS NOT NULL OR (s.speed_gbps < s.usual_gbps AND (s.has_usual OR s.fell))
),
ends_apart AS (
  SELECT n.owner AS host, n.part AS nic, p.owner AS switch, p.part AS port
  FROM below n JOIN below p ON n.is_nic AND NOT p.is_nic AND n.far_owner IS NULL AND p.far_owner IS NULL
    AND n.speed_gbps = p.speed_gbps AND n.usual_gbps = p.usual_gbps AND (n.ended IS NULL) = (p.ended IS NULL)
  QUALIFY count(*) OVER (PARTITION BY n.owner, n.part) = 1 AND count(*) OVER (PARTITION BY p.owner, p.part) = 1
),
joined AS (
  SELECT b.* REPLACE (
    coalesce(b.far_owner, p.switch, n.host) AS far_owner, coalesce(b.far_part, p.port, n.nic) AS far_part,
    coalesce(b.far_is_nic, p.switch IS NULL AND n.host IS NOT NULL) AS far_is_nic
  ), p.switch AS joined_switch, p.port AS joined_port
  FROM below b
  LEFT JOIN ends_apart p ON p.host = b.owner AND p.nic = b.part
  LEFT JOIN ends_apart n ON n.switch = b.owner AND n.port = b.part
),
slow AS (
  SELECT *, owner || ' ' || part AS label, far_owner || ' ' || far_part AS far_label,
    owner || ' ' || part
    || CASE WHEN speed_gbps IS NULL THEN '' ELSE format(' {} at {:g} Gb/s', CASE WHEN ended IS NULL THEN 'runs' ELSE 'ran' END, speed_gbps) END
    || CASE WHEN fell THEN format(' after {:g}', first_gbps) ELSE '' END
    || CASE WHEN peers IS NULL THEN '' ELSE format(
      ', {} of the {} other ports of its role ({}) at {:g}', least(agreeing, peers - 1), peers - 1, role, usual_gbps) END
    || coalesce(', and the fabric says: ' || could_be, '')
    || coalesce(format(' (no log tells its cable: {} {} is taken for the other end, for no other is as slow)',
      joined_switch, joined_port), '') AS sentence
  FROM joined
),
cables AS (
  SELECT *, count(*) OVER c > 1 AS both_ends, string_agg(sentence, '; ') OVER c AS facts,
    -- As slow as NCCL read it when the job began: it was slow before.
    ended IS NOT NULL OR NOT coalesce(bool_or(started_gbps <= speed_gbps) OVER c, false) AS begins,
    min(started) OVER c AS began,
    nth_value(speed_gbps, 2) OVER c AS far_gbps, nth_value(usual_gbps, 2) OVER c AS far_usual_gbps
  FROM (SELECT *, coalesce(least(label, far_label) || greatest(label, far_label), label) AS cable FROM slow)
  WINDOW c AS (
    PARTITION BY cable ORDER BY owner, part ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
  )
  QUALIFY row_number() OVER (PARTITION BY cable ORDER BY owner, part) = 1
),
ends AS (
  SELECT cable, 1 AS number, owner, part, is_nic FROM cables
  UNION ALL SELECT cable, 2, far_owner, far_part, far_is_nic FROM cables WHERE far_owner IS NOT NULL
),
missing AS (
  SELECT host, nic, max_by(with_nic, hosts) AS with_nic, max(hosts) AS of_hosts
  FROM evidence.missing_nics
  WHERE hosts > $peers AND with_nic >= $agreeing * hosts
  GROUP BY host, nic
)
SELECT 'link' AS what, c.cable, CASE WHEN e.is_nic THEN 'nic' ELSE 'port' END AS type,
  CASE WHEN e.is_nic THEN e.owner END AS host, CASE WHEN e.is_nic THEN e.part END AS nic,
  CASE WHEN NOT e.is_nic THEN e.owner END AS switch, CASE WHEN NOT e.is_nic THEN e.part END AS port,
  c.label AS near, coalesce(c.far_label, 'an end no log names') AS far,
  c.speed_gbps AS gbps, c.usual_gbps, c.far_gbps, c.far_usual_gbps, c.could_be, c.facts, c.both_ends,
  CASE WHEN NOT c.begins THEN c.began WHEN c.first_gbps > c.speed_gbps OR c.ended IS NOT NULL OR NOT EXISTS (FROM evidence.job_steps)
    THEN coalesce(c.faster_until, c.since) END AS ts_before,
  CASE WHEN c.begins AND c.faster_until IS NOT NULL THEN c.since END AS begun_by,
  CASE WHEN c.begins THEN c.faster_until END AS sound_at, c.ended AS ts, c.ended, c.label AS slow_part,
  CASE WHEN NOT c.is_nic AND c.far_is_nic THEN c.far_owner ELSE c.owner END AS at,
  NULL::BIGINT AS with_nic, NULL::BIGINT AS of_hosts, NULL::BIGINT AS limited, e.number
FROM cables c JOIN ends e USING (cable)
UNION ALL
SELECT 'missing NIC', host || nic, 'nic', host, nic, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  format('{} of {} hosts had it up', with_nic, of_hosts), false, NULL, NULL, NULL, NULL, NULL, host || ' ' || nic, host,
  with_nic, of_hosts, NULL, 1
FROM missing
UNION ALL
SELECT 'PCIe', host || part, 'host', host, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  format('{}. It was so on {} of {} {}', text, limited, peers, among), false, NULL, NULL, NULL, NULL, NULL, part, host,
  NULL, NULL, limited, 1
FROM evidence.pcie_limits
WHERE peers > $peers AND limited <= (1 - $agreeing) * peers
ORDER BY what, cable, number
