-- question: How often did each leaf pause the NICs below it, and how long were they paused?
-- As the NICs tell it where they do, as the leaf's ports do elsewhere.
SELECT leaf, device, ts_before, ts, any_value(seconds) AS seconds, count(*) AS nics,
  avg(frames_per_second) AS frames_per_second, avg(share) AS share
FROM (FROM evidence.paused_nics QUALIFY seen_at = min(seen_at) OVER (PARTITION BY leaf))
GROUP BY leaf, device, ts_before, ts
ORDER BY leaf, ts
