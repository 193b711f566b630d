-- question: How often did each switch pause the worst of its neighbours, in spans as long as an interval?
-- The hosts below a switch are each read at moments of their own: of a span the worst counts. `place` is the switch,
-- one place without a name holds the hosts whose leaf is not known.
WITH pausing AS (
  SELECT coalesce(switch, '') AS place, ts_before, ts, ts_before + (ts - ts_before) / 2 AS middle,
    frames_per_second AS frames
  FROM evidence.pause_senders
),
span AS (
  SELECT place, greatest(1, 1e6 * median(epoch(ts - ts_before)))::BIGINT AS us FROM pausing GROUP BY place
)
SELECT place, min(ts_before) AS ts_before, max(ts) AS ts, min(middle) AS middle, max(frames) AS frames
FROM pausing JOIN span USING (place)
GROUP BY place, epoch_us(middle) // us
ORDER BY place, ts
