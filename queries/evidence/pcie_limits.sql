-- question: Which PCIe devices trained narrower or slower than they could, and how many of their peers?
-- `peers`: the hosts of which a kernel log or a link event is there; of a GPU the busy GPUs of its model. A GPU lowers
-- its PCIe link while it is idle: it is asked while it computes, and limited if its link was never better meanwhile.
WITH hosts AS (
  SELECT host_name(device) AS host FROM files WHERE formats LIKE '%kernel_log%' AND device IS NOT NULL
  UNION SELECT host_name(host) FROM events WHERE kind IN ('link_up', 'link_down', 'pcie_degraded')
),
reported AS (
  SELECT host_name(host) AS host, part, max(text) AS text FROM events
  WHERE kind = 'pcie_degraded' AND host IS NOT NULL GROUP BY host_name(host), part
),
gpus AS (
  SELECT host, coalesce(regexp_replace(lower(max(bus_id)), '^0000([0-9a-f]{4}:)', '\1'), 'GPU ' || gpu) AS part, max(model) AS model,
    max(pcie_gen) AS gen, max(pcie_gen_max) AS gen_max, max(pcie_width) AS width, max(pcie_width_max) AS width_max
  FROM gpu_states
  WHERE host IS NOT NULL AND gpu IS NOT NULL AND (pcie_gen IS NOT NULL OR pcie_width IS NOT NULL)
    AND coalesce(utilization_percent >= 50, throttle_reasons & 1 = 0, false)
  GROUP BY host, gpu
),
judged AS (
  SELECT *, coalesce(width < width_max, false) OR coalesce(gen < gen_max, false) AS is_limited FROM gpus
),
counted AS (
  SELECT *, count(*) OVER m AS peers, count(*) FILTER (is_limited) OVER m AS limited FROM judged WINDOW m AS (PARTITION BY model)
)
SELECT host, part, text, count(*) OVER (PARTITION BY part) AS limited,
  (SELECT count(*) FROM hosts) AS peers, 'hosts' AS among
FROM reported
UNION ALL
SELECT host, part, 'its link has ' || concat_ws(' and ',
    CASE WHEN width < width_max THEN format('{} of {} lanes', width, width_max) END,
    CASE WHEN gen < gen_max THEN format('generation {} of {}', gen, gen_max) END) || ' while the GPU computes',
  limited, peers, 'GPUs'
FROM counted WHERE is_limited AND NOT EXISTS (FROM reported r WHERE r.host = counted.host AND lower(r.part) = counted.part)
ORDER BY host, part
