-- question: Do collectives take longer while devices pause each other (PFC)?
-- columns:
--   job                    job of the collectives, else of the counters
--   device                 switch, or host for its NICs
--   ts_before              begin of the counter interval, UTC
--   ts                     end of the counter interval, UTC
--   rx_frames_per_second   pause frames received by all ports and priorities: told to stop, 1/s
--   tx_frames_per_second   pause frames sent: told the neighbour to stop, 1/s
--   worst_port             port paused longest (most often, where time is not counted)
--   worst_priority         priority of that port
--   rx_pause_share         share of the interval that port and priority were stopped, 0 to 1
--   tx_pause_share         share of the interval they stopped the neighbour, 0 to 1
--   op                     collective compared
--   bytes                  its message size, bytes
--   calls                  calls that end in the interval
--   pure_ms                median time of the rank that arrived last, ms
--   pure_ratio             pure_ms over the median of the whole run
-- example: fabricobs query collectives_and_pauses
--
-- Collectives: of the largest messages of each communicator and op, the kind (op, bytes, ranks) the
-- job spends most time in; those within one host are left out.
-- An interval without such a call has no time. A SONiC switch counts frames only: its shares are
-- null, not 0. Counters ingested without --job are held against every job.
WITH calls AS (
  SELECT job, op, bytes, ts, pure_ms, usual_ms FROM main_collective WHERE ts IS NOT NULL
),
priorities AS (
  SELECT job, device, port, priority, ts_before, ts, max(seconds) AS seconds,
    max(pfc_rx_frames) AS rx_frames,
    max(pfc_tx_frames) AS tx_frames,
    max(pfc_rx_pause_us) / max(seconds) / 1e6 AS rx_pause_share,
    max(pfc_tx_pause_us) / max(seconds) / 1e6 AS tx_pause_share
  FROM priority_rates
  WHERE coalesce(pfc_rx_frames, pfc_tx_frames, pfc_rx_pause_us, pfc_tx_pause_us) IS NOT NULL
  GROUP BY job, device, port, priority, ts_before, ts
),
ranked AS (
  SELECT *,
    greatest(rx_pause_share, tx_pause_share, 0) + greatest(rx_frames, tx_frames, 0) > 0
      AND row_number() OVER (
        PARTITION BY job, device, ts_before, ts
        ORDER BY greatest(rx_pause_share, tx_pause_share, 0) DESC,
          greatest(rx_frames, tx_frames, 0) DESC, port, priority
      ) = 1 AS worst
  FROM priorities
),
intervals AS (
  SELECT job, device, ts_before, ts,
    sum(rx_frames) / max(seconds) AS rx_frames_per_second,
    sum(tx_frames) / max(seconds) AS tx_frames_per_second,
    any_value(port) FILTER (worst) AS worst_port,
    any_value(priority) FILTER (worst) AS worst_priority,
    any_value(rx_pause_share) FILTER (worst) AS rx_pause_share,
    any_value(tx_pause_share) FILTER (worst) AS tx_pause_share
  FROM ranked
  GROUP BY job, device, ts_before, ts
),
timed AS (
  SELECT i.job, i.ts_before, i.ts, c.job AS job_of_calls,
    any_value(c.op) AS op,
    any_value(c.bytes) AS bytes,
    count(*) AS calls,
    median(c.pure_ms) AS pure_ms,
    median(c.pure_ms) / nullif(any_value(c.usual_ms), 0) AS pure_ratio
  FROM (SELECT DISTINCT job, ts_before, ts FROM intervals) i
  JOIN calls c ON c.ts > i.ts_before AND c.ts <= i.ts
    AND (i.job IS NULL OR i.job IS NOT DISTINCT FROM c.job)
  GROUP BY i.job, i.ts_before, i.ts, c.job
)
SELECT coalesce(t.job_of_calls, i.job) AS job, i.device, i.ts_before, i.ts,
  i.rx_frames_per_second, i.tx_frames_per_second, i.worst_port, i.worst_priority,
  i.rx_pause_share, i.tx_pause_share, t.op, t.bytes, coalesce(t.calls, 0) AS calls,
  t.pure_ms, t.pure_ratio
FROM intervals i
LEFT JOIN timed t ON t.job IS NOT DISTINCT FROM i.job AND t.ts_before = i.ts_before AND t.ts = i.ts
ORDER BY job, i.device, i.ts, i.ts_before;
