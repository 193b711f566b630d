-- {name}_rates for a session that asks many questions: most counters never move, and most priorities
-- and queues of a device are read at the same times. Both are worked out once a series: a port where
-- {name} is `port`, a priority or queue where it is `priority`. `{keys}` name it, each in a line with {key}.
-- Each counter of {name}_samples: a line with {counter}.

-- How each counter of a format of {name}_samples counts: a struct `of` with one of `rise` for each. A map asked
-- in every row would cost more than all else.
CREATE TABLE {name}_counting AS
SELECT format, {
    {counter}: rules['{counter}'],
  } AS of
FROM counter_rules WHERE table_name = '{name}_samples';

-- The series, as each format counts them, one row each: `series` is its number, `clock` is that of all
-- that were read at the same times. Most counters never move: their rise is the same in all
-- intervals and stands here. `moving` names those that do, or are not known at all times, and
-- `ts_source` if that changes.
CREATE TABLE {name}_series AS
WITH told AS (
  -- A number of 64 bits: of a million series two would share one in 1 of 40 million stores.
  SELECT hash({keys}) AS series,
    any_value({key}) AS {key},
    hash(count(*), min(ts), max(ts), sum(hash(ts))) AS clock,
    count(ts_source) > 0 AS ts_source_known,
    CASE WHEN count(ts_source) = count(*) AND min(ts_source) = max(ts_source) THEN min(ts_source) END
      AS ts_source,
    count({counter}) > 0 AS {counter}_known,
    CASE WHEN count({counter}) = count(*) AND min({counter}) = max({counter}) THEN min({counter}) END AS {counter},
  FROM {samples}
  WHERE ts IS NOT NULL
  GROUP BY series
)
SELECT t.series, t.clock, t.ts_source,
  t.{key},
  list_filter([
    CASE WHEN ts_source_known AND t.ts_source IS NULL THEN 'ts_source' END,
    CASE WHEN {counter}_known AND t.{counter} IS NULL THEN '{counter}' END,
  ], lambda name: name IS NOT NULL) AS moving,
  rise(t.{counter}, t.{counter}, of.{counter}, 0) AS {counter},
FROM told t LEFT JOIN {name}_counting c ON c.format = t.format;

-- The intervals between the samples of the series, by their `clock`: those read at the same times share them.
-- `gap` marks an interval more than three times the usual one: rates hold, maxima do not. `repeated` says that
-- some moment of the clock has several samples of one series.
CREATE TABLE {name}_intervals AS
WITH one AS (
  SELECT clock, min(series) AS series FROM {name}_series GROUP BY clock
),
moments AS (
  SELECT o.clock, n.ts, count(*) AS samples
  FROM (SELECT hash({keys}) AS series, ts FROM {samples} WHERE ts IS NOT NULL) n
  JOIN one o USING (series)
  GROUP BY o.clock, n.ts
),
paired AS (
  SELECT clock, lag(ts) OVER w AS ts_before, ts, epoch(ts) - epoch(lag(ts) OVER w) AS seconds,
    max(samples) OVER (PARTITION BY clock) > 1 AS repeated
  FROM moments
  WINDOW w AS (PARTITION BY clock ORDER BY ts)
),
-- Joined: the same as a window's median sorts all columns once more.
usual AS (
  SELECT clock, median(seconds) AS usual_seconds FROM paired WHERE seconds > 0 GROUP BY clock
)
SELECT clock, ts_before, ts, seconds, seconds > 3 * usual_seconds AS gap, repeated
FROM paired JOIN usual USING (clock)
WHERE seconds > 0;
