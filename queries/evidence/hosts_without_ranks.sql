-- question: Which hosts at the end of a cable are not known to carry a rank, and is that sure?
-- A host is a NIC's owner, or called as the training hosts are (node07 like node01); these are guessed where no log of a
-- job names one. It is `sure` where every rank of every job is on a known host; else its ranks' logs may be missing.
WITH trains AS (
  SELECT host_name(host) AS host FROM job_ranks WHERE host IS NOT NULL
  UNION
  FROM other_hosts
),
crews AS (
  SELECT count(j.host) AS placed, max(r.nranks) AS nranks
  FROM job_ranks j
  LEFT JOIN (SELECT job, max(nranks) AS nranks FROM ranks GROUP BY job) r
    ON r.job IS NOT DISTINCT FROM j.job
  GROUP BY j.job
),
looks AS (
  SELECT DISTINCT host_look(host) AS look FROM training_hosts
)
SELECT DISTINCT e.owner AS host,
  coalesce((SELECT bool_and(coalesce(placed >= nranks, false)) FROM crews), false) AS sure
FROM cable_ends e
WHERE host_name(e.owner) NOT IN (FROM trains)
  AND (e.is_nic OR host_look(host_name(e.owner)) IN (FROM looks))
ORDER BY host
