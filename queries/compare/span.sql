-- question: Which steps and times does one side of a comparison cover?
-- Without steps the time of the collectives is taken.
-- columns:
--   steps       Number of steps
--   first_step  First step
--   last_step   Last step
--   begin       When the first step began, UTC
--   end         When the last step ended, UTC
WITH covered AS (
  SELECT step, ts, ts - to_microseconds((1000 * coalesce(step_time_ms, 0))::BIGINT) AS begun
  FROM step_times
  WHERE job IS NOT DISTINCT FROM $job::VARCHAR
    AND coalesce(step >= $first_step::BIGINT, true) AND coalesce(step <= $last_step::BIGINT, true)
    AND ($begin::TIMESTAMP IS NULL OR ts > $begin::TIMESTAMP)
    AND ($end::TIMESTAMP IS NULL OR ts <= $end::TIMESTAMP)
),
measured AS (
  SELECT min(ts) AS begun, max(ts) AS ended FROM collectives
  WHERE job IS NOT DISTINCT FROM $job::VARCHAR AND $first_step IS NULL AND $last_step IS NULL
)
SELECT count(c.step) AS steps, min(step) AS first_step, max(step) AS last_step,
  coalesce($begin::TIMESTAMP, min(c.begun), any_value(m.begun)) AS begin,
  coalesce($end::TIMESTAMP, max(c.ts), any_value(m.ended)) AS end
FROM measured m LEFT JOIN covered c ON true
