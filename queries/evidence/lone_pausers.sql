-- question: Which switches pause their neighbours far more often than the others, or than they did themselves?
-- `now` is the rate in a tenth of the time of the worst of its neighbours (frames a second), `usual` that of the median
-- of the other switches, of a lone switch its own in the calmest tenth.
WITH rates AS (
  SELECT coalesce(switch, 'the leaf of ' || device) AS switch,
    quantile_cont(frames_per_second, 0.9) AS now, quantile_cont(frames_per_second, 0.1) AS calm
  FROM evidence.pause_senders
  WHERE frames_per_second IS NOT NULL
  GROUP BY ALL
),
compared AS (
  SELECT r.switch, r.now, coalesce((SELECT median(o.now) FROM rates o WHERE o.switch <> r.switch), r.calm) AS usual
  FROM rates r
)
SELECT switch, now, usual FROM compared
WHERE now >= $pause_rate AND now >= $pause_ratio * usual
ORDER BY now DESC, switch
