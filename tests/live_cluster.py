"""A simulated cluster whose logs are written as time goes by, with a fault that comes and goes."""

import csv
import gzip
import io
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq

from fabricobs.simulator import SEED
from fabricobs.simulator.cases import choose_kinds, write_case
from fabricobs.simulator.output import JOB_START
from fabricobs.simulator.scenarios import Scenario, load_scenario

FIRST_FAULTY_STEP, LAST_FAULTY_STEP = 70, 200

_STAMPS = (
    re.compile(r"^ \[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+)\]"),  # Megatron
    re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+)Z"),  # step records, rounds of a switch
)


def write_cluster(directory: Path) -> Path:
    """Write all logs of a job whose leaf01 polarises and is mended again; returns their folder."""
    sample = load_scenario("sample").shape
    steps = sample.jobs[0].steps
    (fault,) = sample.faults
    spell = {"at": (FIRST_FAULTY_STEP - 1) / steps, "until": LAST_FAULTY_STEP / steps}
    shape = sample.model_copy(update={"faults": (fault.model_copy(update=spell),)})
    kinds = choose_kinds(["nccl", "train", "steps", "switches"], [])
    write_case(directory, Scenario("live", shape), seed=SEED, kinds=kinds)
    return directory / "logs"


class Replay:
    """Writes the logs of `source` to `target` as they came, at any pace; times are Unix times.

    A log grows by pieces that end anywhere in a line.
    """

    def __init__(self, source: Path, target: Path) -> None:
        self._target = target
        self._pieces = sorted(
            (moment, path, number, text)
            for path, pieces in _files(source)
            for number, (moment, text) in enumerate(pieces)
        )
        self.begin = JOB_START.timestamp()
        self.end = self._pieces[-1][0]
        self._written = 0

    @contextmanager
    def playing(self, begin: float, end: float, seconds: float) -> Iterator[None]:
        """Write what came from `begin` to `end` while the block runs, in so many seconds."""
        thread = threading.Thread(target=self._play, args=(begin, end, seconds), daemon=True)
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def write_until(self, moment: float) -> None:
        """Write what is due at a moment."""
        while self._written < len(self._pieces) and self._pieces[self._written][0] <= moment:
            _, path, _, text = self._pieces[self._written]
            target = self._target / path
            target.parent.mkdir(parents=True, exist_ok=True)
            for half in (text[: len(text) // 2], text[len(text) // 2 :]):
                with target.open("ab") as file:
                    file.write(half)
            self._written += 1

    def _play(self, begin: float, end: float, seconds: float) -> None:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            self.write_until(begin + (end - begin) * passed / seconds)
            time.sleep(0.02)
        self.write_until(end)


def _files(source: Path) -> Iterator[tuple[str, list[tuple[float, bytes]]]]:
    """Yield every file as pieces and when they were written."""
    for path in sorted(p for p in source.rglob("*") if p.is_file()):
        name = str(path.relative_to(source))
        plain = name.removesuffix(".gz").replace(".parquet", ".csv")
        yield plain, list(_pieces(_text(path)))


def _pieces(text: str) -> Iterator[tuple[float, bytes]]:
    """Cut a log a little behind the begin of each line: the last line is always there in part."""
    moment = JOB_START.timestamp()
    left = ""
    for line in text.splitlines(keepends=True):
        stamp = next(filter(None, (pattern.search(line) for pattern in _STAMPS)), None)
        if stamp is not None:
            written = datetime.fromisoformat(stamp[1]).replace(tzinfo=UTC).timestamp()
            moment = max(moment, written)
        cut = min(17, len(line) // 2)
        yield moment, (left + line[:cut]).encode()
        left = line[cut:]
    yield moment, left.encode()


def _text(path: Path) -> str:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode()
    if path.suffix != ".parquet":
        return path.read_text(encoding="utf-8")
    rows = pq.read_table(path).to_pylist()
    lines = io.StringIO()
    writer = csv.DictWriter(lines, rows[0], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        stamp = row["timestamp"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
        writer.writerow(row | {"timestamp": stamp})
    return lines.getvalue()
