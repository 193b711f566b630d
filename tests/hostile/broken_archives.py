"""Archives that break off."""

import gzip
import os
from pathlib import Path

from hostile.case import hostile

_STEP = '{{"step": {}, "rank": 0, "step_time_ms": 10.5}}\n'


@hostile("cut", "breaks off")
def gzip_cut_short(folder: Path) -> None:
    lines = "".join(_STEP.format(step) + f"# {os.urandom(8).hex()}\n" for step in range(20_000))
    packed = gzip.compress(lines.encode())
    (folder / "steps.jsonl.gz").write_bytes(packed[: len(packed) // 2])
