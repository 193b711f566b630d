-- question: Which GPUs ran at a lower clock than the others at the same time, and why?
-- A sample is compared with the median of the busy GPUs of its model in the same round of sampling: of those that no
-- heat or hardware slows, for half of all may throttle together, or of all where these are fewer than `$peers`. `z` is its
-- distance in robust standard deviations, floor 0.5 % of the median. `gpus`: busy GPUs of the host. Reasons are bits of NVML's clocks event
-- reasons (docs.nvidia.com/deploy/nvml-api, group nvmlClocksEventReasons). 96: heat, 132: power, 8: hardware, 192: hardware for one of these.
-- `used`: its utilization is told: else a GPU with a low clock may be idle. `own`: its reason, or a power limit below
-- that of its peers, is of this GPU alone. `usual_low`: the median over GPUs of the lowest clock (quantile `$low`) of each: at
-- their power limit all run slower while they compute than while they wait, and are not asked at the same instant (an
-- H200: 1470 MHz in matrix products, 1980 in a kernel that only waits, both 100 % utilized; where both alternate the
-- reason stays that of power). `low_z` is the distance below it in robust deviations of those lows: at one limit of
-- power GPUs differ by their silicon. `samples`: of the median GPU, that its lows are known from.
WITH rounds AS (
  SELECT *, floor(epoch(ts) / greatest(median(epoch(ts) - epoch(ts_before)) OVER (), 1)) AS round,
    coalesce(reasons & 232, 0) = 0 AS is_free
  FROM evidence.busy_gpus
),
counted AS (
  SELECT *, is_free OR count(*) FILTER (WHERE is_free) OVER (PARTITION BY round, model) < $peers AS is_peer FROM rounds
),
peers AS (
  SELECT *, median(clock) FILTER (WHERE is_peer) OVER r AS peer_clock, count(*) OVER r AS peers,
    median(celsius) FILTER (WHERE is_peer) OVER r AS peer_celsius, median(limit_watts) OVER r AS peer_limit_watts
  FROM counted WINDOW r AS (PARTITION BY round, model)
),
hosts AS (
  SELECT host, count(DISTINCT gpu) AS gpus FROM evidence.busy_gpus GROUP BY host
),
lows AS (
  SELECT model, median(low) AS usual_low, 1.4826 * mad(low) AS deviation, median(samples) AS samples
  FROM (
    SELECT host, gpu, model, quantile_cont(clock, $low) AS low, count(DISTINCT ts) AS samples
    FROM evidence.busy_gpus GROUP BY host, gpu, model
  )
  GROUP BY model
),
spread AS (
  SELECT *, 1 - clock / peer_clock AS behind,
    1.4826 * median(abs(clock - peer_clock)) FILTER (WHERE is_peer) OVER (PARTITION BY round, model) AS deviation
  FROM peers
)
SELECT s.job, s.rank, s.host, s.gpu, s.ts_before, s.ts, s.clock, s.peer_clock, s.behind, s.peers, h.gpus,
  (s.peer_clock - s.clock) / greatest(s.deviation, 0.005 * s.peer_clock) AS z,
  coalesce(s.reasons & 232 > 0, false) OR coalesce(s.limit_watts < $limit * s.peer_limit_watts, false) AS own, l.usual_low,
  l.samples,
  (l.usual_low - s.clock) / greatest(l.deviation, 0.005 * l.usual_low) AS low_z,
  s.celsius, s.peer_celsius, s.watts, s.reasons IS NOT NULL AS told, s.used,
  nullif(concat_ws(' and ',
    CASE WHEN s.reasons & 96 > 0 THEN 'its temperature' END,
    CASE WHEN s.reasons & 132 > 0 THEN 'its power limit' END,
    CASE WHEN s.reasons & 8 > 0 AND s.reasons & 192 = 0 THEN 'a hardware slowdown' END), '') AS reason
FROM spread s
JOIN hosts h ON h.host = s.host
JOIN lows l ON l.model IS NOT DISTINCT FROM s.model
WHERE s.ts_before IS NOT NULL
ORDER BY s.host, s.gpu, s.ts
