-- The runs of the jobs a store holds, worked out from communicators, processes, hosts, times, names
-- and folders of its files. `job` is what rows of a run say: the job's name, NAME#2 in its second run;
-- null where all is of one launch that only its files name. `planned_steps` is what its trainer's log says it will do;
-- `replayed_steps` were done by a run before it too.
-- `candidates` counts the jobs its files may be part of, where that cannot be told.
CREATE OR REPLACE TABLE jobs (
  job VARCHAR, name VARCHAR, run BIGINT, named_by VARCHAR, hosts BIGINT, ranks BIGINT, nranks BIGINT,
  processes BIGINT, first_time TIMESTAMP, last_time TIMESTAMP, first_step BIGINT, last_step BIGINT,
  planned_steps BIGINT, replayed_steps BIGINT, nccl_version VARCHAR, files BIGINT, candidates BIGINT
);

-- Which lines of which files are of which run: from `first_line` to before `end_line` (null: to the
-- last). Files in none of them, such as counters of switches, are of the fabric.
CREATE OR REPLACE TABLE job_files (
  file_id VARCHAR, given VARCHAR, first_line BIGINT, end_line BIGINT, job VARCHAR
);

-- Hosts of other jobs, where one is judged: the fabric has them, the job has not.
CREATE OR REPLACE TABLE other_hosts (host VARCHAR);

-- Hosts of runs that a scheduler alone tells: which rank runs on one is not known.
CREATE OR REPLACE TABLE allocated_hosts (job VARCHAR, host VARCHAR);

-- Hosts of a judged job that other jobs use at the same time: its ranks are not all that send there.
CREATE OR REPLACE TABLE shared_hosts (host VARCHAR);

-- Ranks of a judged job that compute longer than the others in another run of it, too, on other hosts.
CREATE OR REPLACE TABLE moved_ranks (rank BIGINT);

-- Devices a judged job crosses, by every name they have.
CREATE OR REPLACE TABLE crossed_devices (device VARCHAR);

-- When another run began on the hosts of a judged one: what is read of a device from then on tells of that run.
CREATE OR REPLACE TABLE own_time (until TIMESTAMP);
