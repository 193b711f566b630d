-- question: Which hosts or ranks run with a value that is wrong, or is not that of nearly all others?
-- A row is one value of one host or rank that decides. The usual value is that of most hosts; without a value
-- that is wrong by itself it takes `$fewest_hosts` hosts, of which the share `$agreement`, or all but one, have
-- it. `type`
-- is the smallest part that holds what differs: some ranks, hosts, or the job where the share
-- `$most_hosts` of the hosts is exceeded. `differing` and
-- `supporting` say which facts differ; fact, value and usual value are of the one most hosts differ in.
WITH valued AS (
  SELECT *, concat_ws(' ', fact, part) AS name, count(DISTINCT host) OVER v AS holders,
    bool_or(coalesce(bad, false)) OVER v AS is_wrong
  FROM evidence.host_facts
  WINDOW v AS (PARTITION BY about, job, fact, part, value)
),
compared AS (
  SELECT *, count(DISTINCT host) OVER g AS hosts, count(DISTINCT value) OVER g AS different,
    count(bad) OVER g > 0 AS alone, bool_or(is_wrong) OVER g AS any_wrong,
    arg_min(value, (-holders, value)) FILTER (NOT is_wrong) OVER g AS usual,
    max(holders) FILTER (NOT is_wrong) OVER g AS most_holders,
    count(DISTINCT host) FILTER (bad) OVER g AS wrong_hosts
  FROM valued
  WINDOW g AS (PARTITION BY about, job, fact, part)
),
odd AS (
  SELECT * REPLACE (coalesce(usual, 'none of them') AS usual),
    CASE WHEN any_wrong THEN hosts - wrong_hosts ELSE most_holders END AS agreeing,
    count(DISTINCT host) OVER (PARTITION BY about, job, fact, part) AS odd_hosts
  FROM compared
  WHERE CASE WHEN any_wrong THEN bad
    ELSE NOT alone AND different > 1 AND value <> usual AND hosts >= $fewest_hosts
      AND nearly_all(most_holders, hosts, $agreement) END
),
-- The sizes of jobs and of hosts, in what decides.
asked AS (
  SELECT about, job, host, count(DISTINCT rank) AS ranks,
    count(*) OVER (PARTITION BY about, job) AS job_hosts
  FROM evidence.host_facts WHERE decides GROUP BY about, job, host
),
deciding AS (
  SELECT o.*, a.ranks, a.job_hosts, count(*) OVER h AS host_facts,
    count(DISTINCT o.rank) OVER h AS odd_ranks,
    count(DISTINCT o.host) OVER (PARTITION BY o.about, o.job) AS culprit_hosts
  FROM odd o JOIN asked a
    ON a.about = o.about AND a.host = o.host AND a.job IS NOT DISTINCT FROM o.job
  WHERE o.decides
  WINDOW h AS (PARTITION BY o.about, o.job, o.host)
),
typed AS (
  SELECT *, CASE
      WHEN culprit_hosts > $most_hosts * job_hosts THEN 'job'
      WHEN odd_ranks = 0 OR 2 * odd_ranks >= ranks THEN 'host'
      ELSE 'rank'
    END AS type
  FROM deciding
),
sentences AS (
  SELECT about, job, decides, name, array_agg(DISTINCT host) AS on_hosts,
    format('{}: {}', name, array_to_string(list_sort(array_agg(DISTINCT value))[:3], ', '))
    || CASE
      WHEN any_value(agreeing) > 0
        THEN format(' ({} of {} hosts: {})', any_value(agreeing), any_value(hosts), any_value(usual))
      WHEN any_value(hosts) = 1 THEN ' on the only host that tells'
      ELSE format(' on all {} hosts that tell', any_value(hosts))
    END AS sentence
  FROM odd GROUP BY about, job, decides, name
),
told AS (
  SELECT about, job, array_to_string(list(sentence ORDER BY name)[:3], '; ')
    || CASE WHEN count(*) > 3 THEN format('; and {} more', count(*) - 3) ELSE '' END AS differing
  FROM sentences WHERE decides GROUP BY about, job
),
supported AS (
  SELECT s.about, s.job, array_to_string(list(' ' || s.sentence || '.' ORDER BY s.name)[:3], '') AS supporting
  FROM sentences s
  WHERE NOT s.decides AND EXISTS (
    SELECT 1 FROM typed t WHERE t.about = s.about AND t.job IS NOT DISTINCT FROM s.job
      AND (t.type = 'job' OR list_contains(s.on_hosts, t.host))
  )
  GROUP BY s.about, s.job
),
known AS (
  SELECT job, sum(hosts) AS known_hosts FROM evidence.hosts_of_jobs GROUP BY job
)
SELECT t.about, t.job, t.type, CASE WHEN t.type <> 'job' THEN t.host END AS host,
  CASE WHEN t.type = 'rank' THEN t.rank END AS rank,
  first_value(t.name) OVER w AS fact, first_value(t.value) OVER w AS value,
  first_value(t.usual) OVER w AS usual, first_value(t.agreeing / t.hosts) OVER w AS agreeing_share,
  CASE
    WHEN t.type <> 'job' THEN NULL
    WHEN first_value(t.hosts) OVER w = 1 THEN 'the only host that tells'
    ELSE format('{} of {} hosts{}', first_value(t.hosts - t.agreeing) OVER w, first_value(t.hosts) OVER w,
      CASE WHEN first_value(t.hosts) OVER w < k.known_hosts THEN ' that tell' ELSE '' END)
  END AS everywhere,
  d.differing, coalesce(s.supporting, '') AS supporting
FROM typed t
JOIN told d ON d.about = t.about AND d.job IS NOT DISTINCT FROM t.job
LEFT JOIN supported s ON s.about = t.about AND s.job IS NOT DISTINCT FROM t.job
LEFT JOIN known k ON k.job IS NOT DISTINCT FROM t.job
WINDOW w AS (PARTITION BY t.about, t.job ORDER BY t.odd_hosts DESC, t.name, t.host, t.value)
ORDER BY t.about, t.job, t.host_facts DESC, t.host, t.rank, t.name, t.value
