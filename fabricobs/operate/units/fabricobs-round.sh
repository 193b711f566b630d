#!/bin/bash
# A round of the watch as a job of Slurm: a Dask scheduler, its workers as tasks, and the round
# itself on the first node. Two of these jobs never run at once.
#SBATCH --job-name=fabricobs
#SBATCH --dependency=singleton
#SBATCH --ntasks=@workers@
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=2G
#SBATCH --time=@deadline_minutes@
set -euo pipefail
environment=${FABRICOBS_ENVIRONMENT:-/etc/fabricobs/environment}
if [ -r "$environment" ]; then # AWS_ACCESS_KEY_ID and others, secrets of notification targets
  set -a
  # shellcheck source=/dev/null
  . "$environment"
  set +a
fi
folder=$(mktemp -d "${SLURM_SUBMIT_DIR:-$HOME}/.fabricobs-XXXXXX")
started=()
# Nothing waits for a worker to end: Slurm ends what a job leaves.
trap 'kill "${started[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT
file=$folder/scheduler.json
@dask@ scheduler --port 0 --no-dashboard --scheduler-file "$file" &
started+=($!)
until [ -s "$file" ]; do
  kill -0 "${started[0]}"
  sleep 0.2
done
srun @dask@ worker --scheduler-file "$file" --nthreads 1 --no-nanny --no-dashboard \
  --local-directory "${TMPDIR:-/tmp}" &
started+=($!)
address=$(sed -n 's|.*"address": *"tcp://\([^"]*\)".*|\1|p' "$file" | head -n 1)
code=0
@command@ --executor "dask://$address" @logs@ || code=$?
# 1 and 2 are findings; only 3, nothing could be judged, is a failure of the job.
[ "$code" -lt 3 ]
