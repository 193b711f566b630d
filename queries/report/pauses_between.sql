-- question: Who paused whom between $begin and $end (null: from the first sample, to the last)?
-- Both ends of a cable may tell; the one that saw more is taken.
-- columns:
--   pauser             Device that sent pauses
--   paused             Device that was paused
--   paused_trains      Whether that one is a host of a job
--   cables             Cables between them over which pauses came
--   frames_per_second  Pause frames a second, over all of them
--   share              Longest share of the time one of them stood paused; null where none tells
WITH told AS (
  SELECT 'sender' AS seen_at, c.owner AS pauser, c.part AS pauser_part, c.far_owner AS paused,
    i.seconds, i.tx_frames_per_second AS frames, i.tx_share AS share, i.ts_before, i.ts
  FROM pause_intervals i JOIN port_parts p USING (device, port)
  JOIN cable_ends c ON c.owner = p.owner AND c.part = p.part
  UNION ALL
  SELECT 'receiver', c.far_owner, c.far_part, c.owner, i.seconds, i.rx_frames_per_second, i.rx_share,
    i.ts_before, i.ts
  FROM pause_intervals i JOIN port_parts p USING (device, port)
  JOIN cable_ends c ON c.owner = p.owner AND c.part = p.part
),
by_end AS (
  SELECT seen_at, pauser, pauser_part, paused,
    sum(frames * seconds) / nullif(sum(seconds), 0) AS frames,
    sum(share * seconds) / nullif(sum(seconds) FILTER (share IS NOT NULL), 0) AS share
  FROM told
  WHERE coalesce(ts > $begin::TIMESTAMP, true) AND coalesce(ts_before < $end::TIMESTAMP, true)
  GROUP BY ALL
),
by_cable AS (
  SELECT pauser, pauser_part, paused, max(frames) AS frames, max(share) AS share
  FROM by_end GROUP BY ALL
)
SELECT pauser, paused, paused IN (SELECT host FROM training_hosts) AS paused_trains,
  count(*) FILTER (frames > 0) AS cables, sum(frames) AS frames_per_second, max(share) AS share
FROM by_cable
WHERE frames > 0
GROUP BY pauser, paused
ORDER BY frames_per_second DESC, pauser, paused
