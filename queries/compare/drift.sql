-- question: What of the fabric and the hosts is not as it was: devices, cables, ports, speeds, firmware, drivers, settings, routes?
-- What a source said last on each side, of devices that it told of on both. A change that both ends of a cable tell is one.
-- columns:
--   kind    device, cable, port, speed, firmware, driver, setting or route
--   part    Device, and its port, NIC or other part
--   name    What changed of it
--   before  Value on the first side; null: not told there
--   after   Value on the other side; null: not told there
FROM changes_between($begin, $end, $other_begin, $other_end)
ORDER BY ALL
