#!/bin/bash
# EpilogSlurmctld of Slurm: judges the logs of a job that has ended. slurmctld waits for it, so the
# round runs on its own; jobs that end together wait for each other at the lock.
logs=(@logs@)
for path in "${logs[@]}"; do
  case $path in s3://*) ;; *) [ -e "$path" ] || exit 0 ;; esac
done
environment=${FABRICOBS_ENVIRONMENT:-/etc/fabricobs/environment}
if [ -r "$environment" ]; then # AWS_ACCESS_KEY_ID and others, secrets of notification targets
  set -a
  # shellcheck source=/dev/null
  . "$environment"
  set +a
fi
(
  setsid flock --timeout 86400 @lock@ \
    @command@ "${logs[@]}" </dev/null 2>&1 | logger -t fabricobs
) >/dev/null 2>&1 &
exit 0
