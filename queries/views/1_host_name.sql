-- A host by its short name: NCCL cuts names at the first dot, other sources print them whole. An
-- address stays as it is.
CREATE OR REPLACE MACRO host_name(name) AS
  CASE WHEN regexp_full_match(name, '[0-9a-fA-F.:]+') THEN name ELSE split_part(name, '.', 1) END;
