-- question: At which clock was each GPU while it was busy, for what reasons, and which rank ran on it?
-- Of the GPUs that carry a rank where ranks are known: a site's metrics are of its other GPUs too. The n-th rank of a
-- host runs on its n-th GPU where no log tells. Hosts that a scheduler alone tells carry ranks, too, unless another job
-- has them at the same time. Reasons are bits of NVML's clocks event reasons; 1: idle.
WITH numbered AS (
  SELECT job, rank, host, coalesce(gpu, row_number() OVER (PARTITION BY job, host ORDER BY rank, pid) - 1) AS gpu
  FROM job_ranks WHERE host IS NOT NULL
)
SELECT r.job, r.rank, s.host, s.gpu, lag(s.ts) OVER (PARTITION BY s.host, s.gpu ORDER BY s.ts) AS ts_before, s.ts, s.model,
  s.sm_clock_mhz AS clock, s.temperature_celsius AS celsius, s.power_watts AS watts, s.power_limit_watts AS limit_watts,
  s.throttle_reasons AS reasons, s.utilization_percent IS NOT NULL AS used
FROM gpu_states s LEFT JOIN numbered r ON r.host = s.host AND r.gpu = s.gpu
WHERE s.sm_clock_mhz > 0 AND s.gpu IS NOT NULL AND s.host IS NOT NULL
  AND coalesce(s.utilization_percent, 100) >= 50 AND coalesce(s.throttle_reasons, 0) & 1 = 0
  AND (r.host IS NOT NULL OR s.host IN (SELECT host FROM allocated_hosts EXCEPT SELECT host FROM shared_hosts)
    OR NOT EXISTS (SELECT 1 FROM numbered n JOIN gpu_states o ON o.host = n.host AND o.gpu = n.gpu))
ORDER BY s.host, s.gpu, s.ts
