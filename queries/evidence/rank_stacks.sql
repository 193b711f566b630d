-- question: What did the main thread of each rank's process do when its Python stack was dumped?
-- `doing`, null where no known library tells it; `waits`: for a collective or the GPU. `function`, `place`, `code_line`:
-- where; `own_`: in the program's own code around it. Rank null where nothing tells the rank of the process.
SELECT job, rank, host, pid, doing, waits, function, place, code_line, own_function, own_place, own_line, ts
FROM rank_stacks
ORDER BY job, rank, host, pid
