-- question: What did the main thread of each rank's process do when its Python stack was dumped?
-- columns:
--   job           job
--   rank          rank in the job; null where nothing tells it of the process
--   host          its host
--   pid           its process
--   doing         loading data, in checkpoint I/O, in a collective, waiting for its GPU or compiling; null: its own code
--   waits         it waits for other ranks or for the GPU
--   function      function that tells it, else the innermost one
--   place         its file
--   code_line     its line
--   own_function  first function around it that is no library's
--   own_place     its file
--   own_line      its line
--   ts            when it was dumped, where the dump or its path tells
-- lines:
--   stack_frames  process_group IS NULL
-- example: fabricobs query python_stacks
--
-- Of several dumps of a process the last one. Where most ranks wait and a few do not, these are the ones the others wait for.
SELECT job, rank, host, pid, doing, waits, function, place, code_line, own_function, own_place, own_line, ts
FROM rank_stacks
ORDER BY job, waits, rank, host, pid
