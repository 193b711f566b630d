-- question: Where in the program does the last collective that each rank called stand, and which is it?
-- By the flight recorders: the oldest call that did not end, else the last one. `odd_op`: where most ranks of its
-- group call another operation, or another size of an AllReduce or Broadcast, under the number of a call that did
-- not end: `usual_op` and `usual_bytes` are theirs. `function`, `place`, `code_line`: the first frame that is no
-- library's; null where the dump has no frames.
WITH calls AS (
  SELECT job, global_rank AS rank, comm_id, comm_name, op, seq, bytes, state, ts,
    split_part(comm_id, '[', 1) || coalesce(' ' || comm_name, '') AS process_group
  FROM collectives
  WHERE state IS NOT NULL AND global_rank IS NOT NULL AND op NOT IN ('Send', 'Recv')
),
stuck AS (SELECT DISTINCT job, comm_id, seq FROM calls WHERE state <> 'completed'),
counted AS (
  SELECT c.*, count(*) OVER call AS ranks, count(*) OVER (PARTITION BY c.job, c.comm_id, c.seq, c.op, sized) AS alike
  FROM (
    SELECT *, CASE WHEN op IN ('AllReduce', 'Broadcast') THEN bytes END AS sized FROM calls
  ) c
  JOIN stuck s ON s.job IS NOT DISTINCT FROM c.job AND s.comm_id = c.comm_id AND s.seq = c.seq
  WINDOW call AS (PARTITION BY c.job, c.comm_id, c.seq)
),
usual AS (
  SELECT job, comm_id, seq, any_value(op) AS op, any_value(bytes) AS bytes
  FROM counted WHERE 2 * alike > ranks GROUP BY ALL
),
chosen AS (
  SELECT * FROM calls
  QUALIFY row_number() OVER (PARTITION BY job, rank
    ORDER BY state = 'completed', CASE WHEN state <> 'completed' THEN ts END, ts DESC, seq DESC) = 1
),
own AS (
  SELECT job, rank, process_group, seq,
    arg_min(function, frame) AS function, arg_min(place, frame) AS place, arg_min(code_line, frame) AS code_line
  FROM (SELECT * REPLACE (regexp_replace(place, '^.*/(site|dist)-packages/', '') AS place) FROM stack_frames)
  WHERE process_group IS NOT NULL
    AND NOT regexp_matches(place, '(^|/)(torch|lightning\w*|transformers|accelerate|deepspeed|lib/python3\.\d+)/|^<frozen|\.so')
  GROUP BY ALL
)
SELECT c.job, c.rank, c.process_group, c.op, c.seq, c.bytes, c.state <> 'completed' AS open,
  CASE WHEN u.op <> c.op OR (c.op IN ('AllReduce', 'Broadcast') AND u.bytes <> c.bytes) THEN c.op END AS odd_op,
  u.op AS usual_op, u.bytes AS usual_bytes, o.function, o.place, o.code_line
FROM chosen c
LEFT JOIN usual u ON u.job IS NOT DISTINCT FROM c.job AND u.comm_id = c.comm_id AND u.seq = c.seq
LEFT JOIN own o ON o.job IS NOT DISTINCT FROM c.job AND o.rank = c.rank AND o.process_group = c.process_group AND o.seq = c.seq
ORDER BY c.job, c.rank
