"""Writing files so that the same content gives the same bytes, and the clocks that name them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from isal import igzip

from fabricobs.simulator.effects import Floats

JOB_START = datetime(2026, 3, 2, 9, 0, 0, tzinfo=UTC)


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, compressed where the name ends in `.gz`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    if path.suffix == ".gz":
        content = igzip.compress(content, compresslevel=1, mtime=0)
    path.write_bytes(content)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, compressed where the name ends in `.gz`."""
    write_text(path, "".join(f"{line}\n" for line in lines))


def write_snapshots(path: Path, moments: Floats, outputs: Sequence[str]) -> None:
    """Write what a command printed in each round [M], under a line with the time of the round.

    So a collector's loop appends it: `echo "===== $(date -u +%FT%T.%3NZ) ====="; show ...`.
    """
    stamps = iso_stamps(moments)
    parts = (f"===== {s} =====\n{text}" for s, text in zip(stamps, outputs, strict=True))
    write_text(path, "".join(parts))


def clock(moment: float) -> datetime:
    """UTC time of a moment in seconds since the start of the job."""
    return JOB_START + timedelta(seconds=moment)


def epoch_microseconds(moment: float) -> int:
    """Unix time in whole microseconds of a moment in seconds since the start of the job."""
    return round((JOB_START.timestamp() + moment) * 1e6)


def iso_milliseconds(time: datetime) -> str:
    """ISO 8601 text, with milliseconds, of a UTC time."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_stamps(moments: Floats) -> list[str]:
    """ISO 8601 texts, with milliseconds, of moments in seconds since the start of the job."""
    start = np.datetime64(JOB_START.replace(tzinfo=None), "ms")
    times = start + np.round(moments * 1e3).astype("timedelta64[ms]")
    return [f"{text}Z" for text in np.datetime_as_string(times, unit="ms").tolist()]
