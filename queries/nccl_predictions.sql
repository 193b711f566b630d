-- question: What does NCCL's own cost model expect of its choices, by size of the message, and what was measured?
-- columns:
--   job              job
--   op               AllReduce, AllGather, ...; null before 2.19
--   bytes            size of the message, bytes
--   algorithm        algorithm that NCCL chose
--   protocol         protocol that it chose
--   choices          how often it chose it for that size
--   predicted_us     time that its cost model expects, us, median
--   predicted_gbytes_per_s   bytes over that time, GB/s
--   measured_us      time that collectives of that kind and size took, median over calls of the job, us
--   times_predicted  measured over predicted
-- example: fabricobs query nccl_predictions
--
-- NCCL prints its choices with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=TUNING; releases from 2.23 on print no time. Collectives are measured by
-- NCCL Inspector and profilers; their time includes waiting for the last rank. A choice that takes many times as long as
-- expected is made on wrong grounds: a slow link, or a topology that NCCL sees otherwise.
WITH chosen AS (
  SELECT job, op, bytes, algorithm, protocol, count(*) AS choices, median(predicted_us) AS predicted_us
  FROM nccl_calls WHERE algorithm IS NOT NULL AND bytes > 0
  GROUP BY job, op, bytes, algorithm, protocol
),
measured AS (
  SELECT job, op, bytes, median(duration_us) AS measured_us FROM collectives
  WHERE duration_us > 0 AND bytes > 0 GROUP BY job, op, bytes
)
SELECT c.job, c.op, c.bytes, c.algorithm, c.protocol, c.choices, c.predicted_us,
  c.bytes / nullif(c.predicted_us, 0) / 1000 AS predicted_gbytes_per_s, m.measured_us,
  m.measured_us / nullif(c.predicted_us, 0) AS times_predicted
FROM chosen c
LEFT JOIN measured m ON m.job IS NOT DISTINCT FROM c.job AND m.op = c.op AND m.bytes = c.bytes
ORDER BY c.job, c.op, c.bytes, c.choices DESC, c.algorithm;
