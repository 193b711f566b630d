-- question: In which intervals did a NIC pause its switch more than that paused it?
-- A switch that a NIC pauses passes that on: its own pauses then tell of no other full queue.
FROM evidence.nic_pauses WHERE coalesce(back_frames_per_second, 0) < frames_per_second
