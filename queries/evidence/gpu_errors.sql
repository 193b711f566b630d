-- question: Which GPUs did their driver report as failing, when, and which rank runs there?
-- Codes and what they ask for are those of NVIDIA's Xid catalogue
-- (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html): `fatal` ends in a reset of the GPU, a
-- reboot or a replacement; `wearing` is survived, and tells of memory or links that fail bit by bit.
-- Codes of programs (13, 31, 43, 45, ...) accuse no GPU and are left out. `faults` are those of `gpu_samples`; what waits
-- for a reset costs nothing until then (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt). Errors that no sample of a
-- GPU is without are older than the logs, and tell of wear only.
WITH codes (code, meaning, fatal) AS (
  VALUES
    (46, 'the GPU stopped processing', true),
    (48, 'an uncorrectable error of its memory', true),
    (62, 'its microcontroller halted', true),
    (63, 'a row of its memory is remapped, from the next reset on', false),
    (64, 'a row of its memory could not be remapped', true),
    (74, 'an error of its NVLink', true),
    (79, 'it fell off the bus', true),
    (92, 'many correctable errors of its memory', false),
    (94, 'a contained error of its memory', false),
    (95, 'an uncontained error of its memory', true),
    (110, 'a security fault', true),
    (119, 'its system processor (GSP) did not answer', true),
    (120, 'an error of its system processor (GSP)', true),
    (140, 'an unrecovered error of its memory', true),
    (143, 'its initialisation failed', true),
    (144, 'an error of its NVLink (SAW)', true),
    (145, 'an error of its NVLink (RLW)', true),
    (146, 'an error of its NVLink (TLW)', true),
    (147, 'an error of its NVLink (TREX)', true),
    (148, 'an error of its NVLink (NVLPW)', true),
    (149, 'an error of its NVLink (NETIR)', true),
    (150, 'an error of its NVLink (MSE)', true)
),
faults (bit, meaning, fatal) AS (
  VALUES
    (1, 'values that cannot be read', true),
    (2, 'a row of its memory that waits for a reset to be remapped', false),
    (4, 'a row of its memory that could not be remapped', true),
    (8, 'that it needs a reset', false)
),
sampled AS (
  SELECT g.host, g.gpu, f.meaning, f.fatal, g.ts FROM gpu_states g JOIN faults f ON g.faults & f.bit > 0
  UNION ALL
  SELECT host, gpu, 'uncorrected errors of its memory', grown, ts
  FROM (SELECT *, ecc_uncorrected > min(ecc_uncorrected) OVER (PARTITION BY host, gpu) AS grown FROM gpu_states)
  WHERE ecc_uncorrected > 0
),
reported AS (
  SELECT e.job, host_name(e.host) AS host, e.part, e.code, c.meaning, c.fatal, e.ts, e.gpu
  FROM named_events e JOIN codes c USING (code)
  WHERE e.kind = 'xid' AND e.host IS NOT NULL
  UNION ALL
  SELECT NULL, host, gpu::VARCHAR, NULL, meaning, fatal, ts, gpu FROM sampled WHERE host IS NOT NULL AND gpu IS NOT NULL
),
gpus AS (
  SELECT host, count(DISTINCT ltrim(lower(bus_id), '0')) AS gpus FROM ranks GROUP BY host
)
SELECT coalesce(e.job, j.job) AS job, e.host, e.gpu, any_value(j.rank) AS rank,
  coalesce(e.gpu::VARCHAR, any_value(e.part)) AS which,
  string_agg(DISTINCT e.code::VARCHAR, ', ' ORDER BY e.code::VARCHAR) AS codes,
  string_agg(DISTINCT e.meaning, ', ' ORDER BY e.meaning) AS meanings,
  bool_or(e.fatal) AS severe, count(*) AS events, nullif(count(*) FILTER (e.code IS NULL), 0) AS samples,
  coalesce((SELECT any_value(o.gpus) FROM gpus o WHERE o.host = e.host), 0) AS gpus, min(e.ts) AS ts_before, max(e.ts) AS ts
FROM reported e
LEFT JOIN job_ranks j ON j.host = e.host AND j.gpu = e.gpu
  AND (e.job IS NULL OR j.job IS NOT DISTINCT FROM e.job)
GROUP BY coalesce(e.job, j.job), e.host, e.gpu, CASE WHEN e.gpu IS NULL THEN e.part END
ORDER BY e.host, e.gpu
