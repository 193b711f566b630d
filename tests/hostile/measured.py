"""Run the command line and measure the memory and processor time of all its processes."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# A small process in between: the peak memory of a child includes that of the process that starts
# it, which would be pytest. The limits end a case that would otherwise harm the machine, or run on
# without end: it is killed, which no case expects.
_LAUNCHER = """
import json, os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as file:
    json.dump([os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10,
               usage.ru_utime + usage.ru_stime], file)
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """How a run ended and what it took."""

    code: int
    stdout: str
    stderr: str
    peak_bytes: int
    cpu_seconds: float


def run_measured(folder: Path, *arguments: object) -> Measured:
    """Run `fabricobs` with these arguments; `folder` takes the measurement."""
    told = folder / "measured.json"
    program = [sys.executable, "-c", "from fabricobs.cli import main; main()"]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, told, *program, *map(str, arguments)],
        capture_output=True,
        check=True,
        timeout=300,
    )
    code, peak_bytes, cpu_seconds = json.loads(told.read_text())
    out, err = (stream.decode("utf-8", "surrogateescape") for stream in (done.stdout, done.stderr))
    return Measured(code, out, err, peak_bytes, cpu_seconds)
