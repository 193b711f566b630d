-- question: Which hosts stand in one communicator of several hosts that is smaller than its job?
-- Each waits for the others there: what makes one of them late makes all of them late elsewhere.
WITH members AS (
  SELECT job, comm_id, host FROM ranks WHERE host IS NOT NULL
  UNION
  SELECT job, comm_id, host_name(host) FROM collectives WHERE host IS NOT NULL
),
groups AS (
  SELECT job, comm_id, list_sort(list(DISTINCT host)) AS hosts FROM members WHERE comm_id IS NOT NULL GROUP BY job, comm_id
)
SELECT DISTINCT job, hosts FROM groups
WHERE len(hosts) > 1
  AND len(hosts) < (SELECT count(DISTINCT m.host) FROM members m WHERE m.job IS NOT DISTINCT FROM groups.job)
ORDER BY job, hosts
