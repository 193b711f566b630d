-- question: Which switches pause their neighbours far more often than the others, or than they did themselves, and which NIC do they spare?
-- `frames_per_second` go to the worst of the neighbours; `usual` is what nine tenths of the time stays below at the
-- median of the other switches, of a lone switch what a tenth of its own does. More arrives for a port than it can
-- send on: all that send to it are paused, and it is not. `host`, `nic` and `port` are the NIC that pauses the switch
-- itself (`back_frames` a second, `back_share` of the time), else that of the one host below it that was paused less
-- than a tenth as often as the worst, while three or more were: of fewer, chance leaves one out.
WITH rates AS (
  SELECT place AS switch, quantile_cont(frames, 0.9) AS most, quantile_cont(frames, 0.1) AS calm
  FROM evidence.worst_pauses WHERE place <> '' GROUP BY place
),
compared AS (
  SELECT r.switch, coalesce((SELECT median(o.most) FROM rates o WHERE o.switch <> r.switch), r.calm) AS usual
  FROM rates r
),
loud AS (
  SELECT c.switch, p.ts_before, p.ts, p.frames, c.usual, median(p.frames) OVER (PARTITION BY c.switch) AS median_frames
  FROM evidence.worst_pauses p JOIN compared c ON c.switch = p.place
  WHERE p.frames >= greatest($pause_rate, $pause_ratio * c.usual)
),
paused AS (
  SELECT p.leaf AS switch, p.host, p.nic, any_value(p.leaf_port) AS port, avg(p.frames_per_second) AS frames
  FROM evidence.paused_nics p JOIN loud l
    ON l.switch = p.leaf AND p.ts_before + (p.ts - p.ts_before) / 2 BETWEEN l.ts_before AND l.ts
  WHERE p.frames_per_second IS NOT NULL
  GROUP BY p.leaf, p.host, p.nic
),
-- Its other NICs send to the host's own by NVLink: of a host with several none is paused, and none is named.
hosts AS (
  SELECT switch, host, any_value(nic) AS nic, any_value(port) AS port, count(*) AS nics,
    max(frames) < 0.1 * max(max(frames)) OVER (PARTITION BY switch) AS is_spared
  FROM paused GROUP BY switch, host
),
spared AS (
  FROM hosts
  WINDOW s AS (PARTITION BY switch)
  QUALIFY is_spared AND nics = 1 AND count(*) FILTER (is_spared) OVER s = 1 AND count(*) OVER s >= 4
),
-- A NIC that pauses the switch itself, for less than a storm, and is paused less: its queue is the full one.
pausers AS (
  SELECT p.switch, p.host, p.nic, any_value(p.port) AS port, median(p.frames_per_second) AS frames,
    median(p.share) AS share
  FROM evidence.pausing_nics p JOIN loud l
    ON l.switch = p.switch AND p.ts_before + (p.ts - p.ts_before) / 2 BETWEEN l.ts_before AND l.ts
  WHERE p.nic IS NOT NULL
  GROUP BY p.switch, p.host, p.nic
  QUALIFY row_number() OVER (PARTITION BY p.switch ORDER BY median(p.frames_per_second) DESC, p.host, p.nic) = 1
),
receivers AS (
  SELECT switch, coalesce(p.host, s.host) AS host, coalesce(p.nic, s.nic) AS nic, coalesce(p.port, s.port) AS port,
    p.frames AS back_frames, p.share AS back_share
  FROM pausers p FULL JOIN spared s USING (switch)
)
SELECT l.switch, l.ts_before, l.ts, min(l.ts) OVER (PARTITION BY l.switch) AS begun_by, l.frames AS frames_per_second, l.median_frames, l.usual,
  r.host, r.nic, r.port, r.back_frames, r.back_share,
  list_concat(
    [{'type': 'switch', 'host': NULL, 'nic': NULL, 'switch': l.switch}],
    CASE WHEN r.nic IS NOT NULL THEN [{'type': 'nic', 'host': r.host, 'nic': r.nic, 'switch': NULL}] END
  ) AS entities
FROM loud l LEFT JOIN receivers r USING (switch)
ORDER BY l.switch, l.ts
