-- A GPU at one time: exports of metrics, and `nvidia-smi -q`, hold each of its values in a row of its own.
-- Where no output tells its number, it is its place among the PCI addresses of the host: nvidia-smi's order.
CREATE OR REPLACE VIEW gpu_states AS
WITH numbered AS (
  SELECT * REPLACE (host_name(host) AS host, coalesce(gpu,
    CASE WHEN bus_id IS NOT NULL THEN dense_rank() OVER (PARTITION BY host_name(host), gpu IS NULL ORDER BY bus_id) - 1 END) AS gpu)
  FROM gpu_samples WHERE ts IS NOT NULL
)
SELECT host, gpu, ts, max(model) AS model, max(sm_clock_mhz) AS sm_clock_mhz,
  max(sm_clock_max_mhz) AS sm_clock_max_mhz, max(power_watts) AS power_watts, max(power_limit_watts) AS power_limit_watts,
  max(temperature_celsius) AS temperature_celsius, max(utilization_percent) AS utilization_percent,
  bit_or(throttle_reasons) AS throttle_reasons, max(bus_id) AS bus_id, max(ecc_uncorrected) AS ecc_uncorrected, bit_or(faults) AS faults,
  max(pcie_gen) AS pcie_gen, max(pcie_gen_max) AS pcie_gen_max, max(pcie_width) AS pcie_width, max(pcie_width_max) AS pcie_width_max,
  max(pcie_replays) AS pcie_replays
FROM numbered
GROUP BY host, gpu, ts;
