-- question: Which GPUs have errors of memory, faults, or a PCIe link below what it can be?
-- columns:
--   host            host
--   gpu             index of the GPU on its host
--   model           what the GPU is
--   samples         samples of it
--   ecc_uncorrected most uncorrected errors of its memory since the driver was loaded
--   faults          1 a value cannot be read (ERR!), 2 memory waits to be remapped, 4 could not be, 8 a reset is asked for
--   pcie_gen        best generation of its PCIe link while it computed (50 % busy and more)
--   pcie_gen_max    generation that it could have
--   pcie_width      most lanes while it computed
--   pcie_width_max  lanes that it could have
--   pcie_replays    packets sent again over PCIe from the first sample to the last
-- example: fabricobs query gpu_health
--
-- An idle GPU lowers the generation of its link by itself.
SELECT host, gpu, max(model) AS model, count(*) AS samples, max(ecc_uncorrected) AS ecc_uncorrected, bit_or(faults) AS faults,
  max(pcie_gen) FILTER (utilization_percent >= 50) AS pcie_gen, max(pcie_gen_max) AS pcie_gen_max,
  max(pcie_width) FILTER (utilization_percent >= 50) AS pcie_width, max(pcie_width_max) AS pcie_width_max,
  max(pcie_replays) - min(pcie_replays) AS pcie_replays
FROM gpu_states
GROUP BY host, gpu
HAVING coalesce(max(ecc_uncorrected), bit_or(faults), max(pcie_gen_max), max(pcie_width_max), max(pcie_replays)) IS NOT NULL
ORDER BY coalesce(bit_or(faults), 0) DESC, coalesce(max(ecc_uncorrected), 0) DESC,
  coalesce(max(pcie_width) FILTER (utilization_percent >= 50) < max(pcie_width_max), false) DESC, host, gpu;
