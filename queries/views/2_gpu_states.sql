-- A GPU at one time: exports of metrics may hold each of its values in a file of its own.
CREATE OR REPLACE VIEW gpu_states AS
SELECT host_name(host) AS host, gpu, ts, max(model) AS model, max(sm_clock_mhz) AS sm_clock_mhz,
  max(sm_clock_max_mhz) AS sm_clock_max_mhz, max(power_watts) AS power_watts,
  max(temperature_celsius) AS temperature_celsius, max(utilization_percent) AS utilization_percent,
  bit_or(throttle_reasons) AS throttle_reasons
FROM gpu_samples
WHERE ts IS NOT NULL
GROUP BY host_name(host), gpu, ts;
