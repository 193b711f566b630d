#!/bin/bash
# EpilogSlurmctld of Slurm: judges the logs of a job that has ended. slurmctld waits for it, so the
# round runs on its own; jobs that end together wait for each other at the lock.
logs=(@logs@)
for path in "${logs[@]}"; do
  [ -e "$path" ] || exit 0
done
(
  setsid flock --timeout 86400 @lock@ \
    @command@ "${logs[@]}" </dev/null 2>&1 | logger -t fabricobs
) >/dev/null 2>&1 &
exit 0
