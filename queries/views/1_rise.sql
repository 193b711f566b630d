-- The rise of a counter between two samples, NULL where it cannot be known.
--
-- `info` says how the counter counts. A fall is a reset, unless a 32-bit counter that wraps stood
-- in the last tenth of its range and would have risen by no more than 18 million a second: 1.5
-- times the packets of 4 KiB that fill 400 Gb/s. A counter that stops at its maximum says nothing
-- once it is there; one beyond that maximum has more bits than told. Negative values are garbage of
-- the device.
CREATE OR REPLACE MACRO rise(before, after, info, seconds) AS CASE
  WHEN info.kind = 'delta' THEN after
  WHEN info.kind = 'gauge' OR before < 0 OR after < 0 THEN NULL
  WHEN info.overflow = 'saturate' AND info.width < 64 AND before = info.most - 1 THEN NULL
  WHEN after >= before THEN after - before
  WHEN info.overflow = 'wrap' AND info.width = 32 AND before > 0.9 * info.most
    AND after + info.most - before <= 18e6 * seconds THEN (after + info.most - before)::BIGINT
END;
