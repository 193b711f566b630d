-- What a frame of a Python stack tells of what its thread does: `doing` by the file of the code and its function, both
-- expressions. `waits`: for the others of a collective, or for the GPU, which does. `outermost`: the frame to show is
-- the one nearest to the program. Names of files are those of the libraries; of the program's own code, files that are
-- called after what they do.
CREATE OR REPLACE VIEW stack_places (doing, waits, outermost, place, function) AS VALUES
  ('in a collective', true, false, '(^|/)torch/distributed/(distributed_c10d|_functional_collectives|c10d_logger)\.py$', '.'),
  ('in a collective', true, false, '(^|/)(deepspeed/comm|horovod|mpi4py)/', '.'),
  ('in a collective', true, false, 'libnccl|librccl', '.'),
  ('in a collective', true, false, '.', '^(nccl[A-Z]|c10d::ProcessGroupNCCL)'),
  ('waiting for its GPU', true, false, '(^|/)torch/cuda/(__init__|streams)\.py$', 'synchronize|wait'),
  ('waiting for its GPU', true, false, '.', '^(cuda|cu|hip)(Stream|Device|Event|Ctx)Synchronize'),
  ('loading data', false, true,
    '(^|/)(torch/utils/data|torchdata|webdataset|datasets|streaming|litdata|nvidia/dali|energon)/', '.'),
  ('loading data', false, true, '(^|/)(data_?loaders?|data_?sets?|data_?iterators?)\.py$', '.'),
  ('in checkpoint I/O', false, true,
    '(^|/)(torch/serialization\.py$|torch/distributed/checkpoint/|dist_checkpointing/|safetensors/|orbax/|torchsnapshot/)', '.'),
  -- torch/utils/checkpoint.py computes activations again and has none of these functions.
  ('in checkpoint I/O', false, true, '(^|/)\w*(checkpoint|ckpt)\w*\.py$', '(?i)save|load|write|read|upload|restore'),
  ('compiling', false, true, '(^|/)(torch/_inductor|torch/_dynamo|triton/compiler|triton/runtime)/', 'compil');

-- The ranks of processes by the reports of NCCL's RAS: those of their largest communicator, if it is the only one of its
-- size. Hosts are called as in the report, mostly by their addresses.
CREATE OR REPLACE VIEW ras_ranks AS
SELECT job, host, pid, max(rank) AS rank
FROM (
  SELECT n.job, n.host, n.pid, n.rank, n.nranks, n.comm_id
  FROM nccl_ranks n
  WHERE n.comm IS NULL AND n.comm_id LIKE '0x%' AND n.nranks IS NOT NULL AND n.rank IS NOT NULL AND n.pid IS NOT NULL
  QUALIFY n.nranks = max(n.nranks) OVER (PARTITION BY n.job)
    AND min(n.comm_id) OVER (PARTITION BY n.job, n.nranks) = max(n.comm_id) OVER (PARTITION BY n.job, n.nranks)
)
GROUP BY job, host, pid
HAVING count(DISTINCT rank) = 1;

-- Process ids that one process of a job has, and its rank: they tell the process where a host is called by another name.
CREATE OR REPLACE VIEW lone_processes AS
WITH known AS (
  SELECT job, rank, host, pid FROM job_ranks WHERE pid IS NOT NULL AND rank IS NOT NULL
),
told AS (
  FROM known
  UNION ALL
  SELECT r.job, r.rank, NULL, r.pid FROM ras_ranks r
  ANTI JOIN known k ON k.job IS NOT DISTINCT FROM r.job AND k.pid = r.pid
)
SELECT job, pid, max(rank) AS rank, max(host) AS host FROM told
GROUP BY job, pid HAVING count(*) = 1;

-- The stack of the main thread of each process, as last dumped, by rank; rank null where nothing tells it. Of faults
-- and signals Python prints the main thread last. `doing`: what its innermost frame that is known does, null where
-- none is; `function`, `place` and `code_line` are that frame, else the innermost. `own_`: the first frame around it
-- that is no library's. `ts`: when it was dumped, where the dump or its path tells.
CREATE OR REPLACE VIEW rank_stacks AS
WITH frames AS (
  SELECT s.* REPLACE (regexp_replace(s.place, '^.*/(site|dist)-packages/', '') AS place), coalesce(s.ts, f.dated) AS dumped_at, f.modified,
    concat_ws('|', s.file_id, coalesce(s.rank, -1), coalesce(s.host, ''), coalesce(s.pid, -1)) AS process
  FROM stack_frames s LEFT JOIN files f ON f.file_id = s.file_id
  WHERE s.process_group IS NULL
),
main AS (
  SELECT process,
    coalesce(
      max(thread) FILTER (thread_name = 'MainThread'), max(thread) FILTER (thread = pid::VARCHAR), arg_max(thread, line)
    ) AS thread
  FROM frames GROUP BY process
),
last_dump AS (
  SELECT f.process, f.thread, max(f.line) AS line
  FROM frames f JOIN main m ON m.process = f.process AND m.thread IS NOT DISTINCT FROM f.thread
  WHERE f.frame = 0
  GROUP BY ALL
),
placed AS (
  SELECT d.*, coalesce(d.rank, j.rank, l.rank) AS job_rank, coalesce(j.host, l.host, host_name(d.host)) AS job_host,
    (j.rank IS NOT NULL OR l.rank IS NOT NULL) AS is_known
  FROM frames d
  JOIN last_dump m ON m.process = d.process AND m.thread IS NOT DISTINCT FROM d.thread AND d.line >= m.line
  LEFT JOIN (
    SELECT job, host, pid, max(rank) AS rank FROM job_ranks WHERE pid IS NOT NULL GROUP BY ALL HAVING count(*) = 1
  ) j ON j.job IS NOT DISTINCT FROM d.job AND j.host = host_name(d.host) AND j.pid = d.pid
  LEFT JOIN lone_processes l ON l.job IS NOT DISTINCT FROM d.job AND l.pid = d.pid
),
-- Of the processes of a rank the one that NCCL names, else the first in its file: workers of a loader follow it.
chosen AS (
  SELECT * FROM placed
  QUALIFY job_rank IS NULL OR process = first_value(process) OVER (
    PARTITION BY job, job_rank ORDER BY is_known DESC, coalesce(dumped_at, modified) DESC NULLS LAST, line)
),
told AS (
  SELECT c.*, k.doing, k.waits, k.outermost,
    NOT regexp_matches(c.place, '(^|/)(torch|lightning\w*|pytorch_lightning|transformers|accelerate|deepspeed|lib/python3\.\d+)/|^(threading|queue|selectors|socket|runpy)\.py$|^<frozen|\.so')
      AND NOT regexp_matches(c.function, '^_bootstrap') AS is_own
  FROM chosen c
  LEFT JOIN stack_places k ON regexp_matches(c.place, k.place) AND regexp_matches(c.function, k.function)
),
kinds AS (
  SELECT process, arg_min(doing, frame) AS doing, arg_min(waits, frame) AS waits
  FROM told WHERE doing IS NOT NULL GROUP BY process
),
shown AS (
  SELECT t.process,
    coalesce(CASE WHEN bool_or(t.outermost) FILTER (t.doing = k.doing) THEN max(t.frame) FILTER (t.doing = k.doing)
      ELSE min(t.frame) FILTER (t.doing = k.doing) END, 0) AS frame
  FROM told t LEFT JOIN kinds k USING (process)
  GROUP BY t.process
)
SELECT any_value(t.job) AS job, any_value(t.job_rank) AS rank, any_value(t.job_host) AS host, any_value(t.pid) AS pid,
  any_value(k.doing) AS doing, coalesce(any_value(k.waits), false) AS waits,
  any_value(t.function) FILTER (t.frame = s.frame) AS function,
  any_value(t.place) FILTER (t.frame = s.frame) AS place,
  any_value(t.code_line) FILTER (t.frame = s.frame) AS code_line,
  arg_min(t.function, t.frame) FILTER (t.frame > s.frame AND t.is_own) AS own_function,
  arg_min(t.place, t.frame) FILTER (t.frame > s.frame AND t.is_own) AS own_place,
  arg_min(t.code_line, t.frame) FILTER (t.frame > s.frame AND t.is_own) AS own_line,
  max(t.dumped_at) AS ts, any_value(t.file_id) AS file_id
FROM told t
JOIN shown s USING (process)
LEFT JOIN kinds k USING (process)
GROUP BY t.process;
