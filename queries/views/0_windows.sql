-- Queries over time cut the time of the counters into 30 windows, none shorter than 30 s.
CREATE OR REPLACE MACRO window_seconds(first, last) AS greatest(30, (epoch(last) - epoch(first)) / 30);

-- Begin of the window in which a time lies, of windows of so many seconds that begin at `first`.
CREATE OR REPLACE MACRO window_of(time, first, seconds) AS
  first + to_seconds(seconds * floor((epoch(time) - epoch(first)) / seconds));
