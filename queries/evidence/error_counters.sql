-- question: Of how many ports does each source tell each counter of errors on the wire?
-- `of_sound` says that it tells ports without any error, too: some commands list none but those with errors.
WITH totals AS (
  SELECT device, port, format, max(COLUMNS(lambda c: counter_family(c) = 'wire'))
  FROM named_samples GROUP BY device, port, format
),
told AS (
  FROM totals UNPIVOT (total FOR counter IN (COLUMNS(lambda c: counter_family(c) = 'wire')))
)
SELECT format, counter, count(*) AS ports,
  bool_or(bool_or(total = 0)) OVER (PARTITION BY format) AS of_sound
FROM told
GROUP BY format, counter
ORDER BY format, counter
