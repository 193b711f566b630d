"""Whole processes, timed from outside: what a user waits for, and the memory it takes."""

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Run:
    """One run: wall-clock and processor seconds, peak resident MiB of its largest process."""

    seconds: float
    processor_seconds: float
    peak_mib: float


def timed(command: Sequence[str | Path]) -> Run:
    """Run a command as a whole process; RuntimeError if it fails."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    with process.stderr:
        errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command}: {errors.decode()[-500:]}")
    seconds = time.perf_counter() - started
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
