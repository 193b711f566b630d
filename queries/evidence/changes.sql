-- question: What of the fabric and the hosts is told otherwise since `$begin`, until `$end`, than before?
-- Devices and cables first, then what else carries the traffic.
SELECT kind, part, name, before, after
FROM changes_between(NULL, $begin, $begin, $end)
ORDER BY list_position(['device', 'cable', 'speed', 'port', 'route', 'setting', 'driver', 'firmware'], kind), part, name
