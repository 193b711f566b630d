"""Archives and compressed files that break off, or say what cannot be."""

import gzip
import io
import os
import tarfile
from pathlib import Path

from hostile.case import hostile

_STEP = '{{"step": {}, "rank": 0, "step_time_ms": 10.5}}\n'
_STEPS = "".join(map(_STEP.format, range(10))).encode()


def _tar(path: Path, members: dict[str, bytes], mtime: str | None = None) -> None:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            if mtime is not None:
                entry.pax_headers = {"mtime": mtime}
            tar.addfile(entry, io.BytesIO(data))


@hostile("cut", "breaks off")
def gzip_cut_short(folder: Path) -> None:
    lines = "".join(_STEP.format(step) + f"# {os.urandom(8).hex()}\n" for step in range(20_000))
    packed = gzip.compress(lines.encode())
    (folder / "steps.jsonl.gz").write_bytes(packed[: len(packed) // 2])


@hostile("cells", "the archive's time of this file is none", rows=10)
def tar_member_of_a_time_that_is_too_large(folder: Path) -> None:
    _tar(folder / "steps.tar", {"steps.jsonl": _STEPS}, mtime="1e300")


@hostile("cells", "the archive's time of this file is none", rows=10)
def tar_member_of_a_time_that_is_not_a_number(folder: Path) -> None:
    _tar(folder / "steps.tar", {"steps.jsonl": _STEPS}, mtime="nan")


@hostile("refused", "leads out of the archive")
def tar_member_that_leads_outside(folder: Path) -> None:
    _tar(folder / "steps.tar", {"../../outside.jsonl": _STEPS})
