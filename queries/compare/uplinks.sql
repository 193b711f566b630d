-- question: How evenly did the uplinks of each switch share the load on one side?
-- Intervals that carry less than a quarter of the group's usual traffic are left out: idle links look
-- as uneven as can be.
-- columns:
--   uplink_group    Equal-cost links of one switch
--   top_half_share  Share of the busier half of the links; 0.5 is even
WITH usual AS (
  SELECT *, median(sent) OVER (PARTITION BY uplink_group) AS usual
  FROM uplink_intervals
  WHERE NOT coalesce(gap, false) AND links = members AND links >= 2 AND sent > 0
    AND (job IS NULL OR job IS NOT DISTINCT FROM $job::VARCHAR)
)
SELECT uplink_group, top_half_share
FROM usual
WHERE sent >= 0.25 * usual
  AND ts_before + (ts - ts_before) / 2 > $begin::TIMESTAMP
  AND ts_before + (ts - ts_before) / 2 <= $end::TIMESTAMP
ORDER BY uplink_group, ts
