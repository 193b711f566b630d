-- question: How do clock, power and temperature of the GPUs compare?
-- columns:
--   host         host
--   gpu          index of the GPU on its host
--   samples      samples in which it was busy (50 % and more, or not told)
--   sm_clock_mhz     median clock of the streaming multiprocessors, MHz
--   lowest_mhz       lowest of them, MHz
--   celsius      highest temperature, degrees Celsius
--   watts        median power, W
--   throttled    share of the samples with a reason of heat, power or hardware, 0 to 1
-- lines:
--   gpu_samples   coalesce(utilization_percent, 100) >= 50
-- peers:
--   gpu_samples   sm_clock_mhz
-- example: fabricobs query gpu_clocks
--
-- A power limit alone (software power cap) is usual under load; compare the clocks.
SELECT host, gpu, count(*) AS samples, median(sm_clock_mhz) AS sm_clock_mhz, min(sm_clock_mhz) AS lowest_mhz,
  max(temperature_celsius) AS celsius, median(power_watts) AS watts,
  avg((throttle_reasons & 236 > 0)::INTEGER) AS throttled
FROM gpu_states
WHERE coalesce(utilization_percent, 100) >= 50
GROUP BY host, gpu
ORDER BY sm_clock_mhz, host, gpu;
