-- A host by its short name: NCCL cuts names at the first dot, other sources print them whole. An
-- address stays as it is.
CREATE OR REPLACE MACRO host_name(name) AS
  CASE WHEN regexp_full_match(name, '[0-9a-fA-F.:]+') THEN name ELSE split_part(name, '.', 1) END;

-- Whether a host is called by an address of IPv4 or IPv6.
CREATE OR REPLACE MACRO is_address(name) AS coalesce(regexp_full_match(name, '[0-9a-fA-F]*[.:][0-9a-fA-F.:]+'), false);

-- How a host is called, without what counts: numbers, and the letter of a rack or pod before a number where a word
-- tells what is meant. `c09-p1-dgx-c01` is called as `a02-p1-dgx-c02` is; `s01` not as `n01`, a switch as a host.
CREATE OR REPLACE MACRO host_look(name) AS CASE
  WHEN regexp_matches(name, '[A-Za-z]{2,}')
    THEN regexp_replace(regexp_replace(name, '[0-9]+', '#', 'g'), '(^|[^A-Za-z])[A-Za-z]#', '\1@#', 'g')
  ELSE regexp_replace(name, '[0-9]+', '#', 'g')
END;
