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

import numpy as np
import pyarrow.parquet as pq

from fabricobs.simulate import run as physics
from fabricobs.simulate import workload
from fabricobs.simulate.cluster import build_cluster
from fabricobs.simulate.fabric import observe
from fabricobs.simulate.megatron import write_megatron
from fabricobs.simulate.nccl import write_nccl
from fabricobs.simulate.routes import draw_routes, polarise
from fabricobs.simulate.sonic import write_switches
from fabricobs.simulate.step_records import write_step_records

SEED = 20260302
FIRST_FAULTY_STEP, LAST_FAULTY_STEP = 70, 200

_STAMPS = (
    re.compile(r"^ \[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+)\]"),  # Megatron
    re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+)Z"),  # step records
)


def write_cluster(directory: Path) -> None:
    """Write all logs of a job whose leaf01 polarises and is mended again."""
    healthy = draw_routes(physics.stream(SEED, 1))
    faulty = polarise(
        healthy, physics.FAULTY_LEAF, physics.POLARISED_SHARE, physics.stream(SEED, 2)
    )
    steps = np.arange(1, workload.STEPS + 1)
    during = (steps >= FIRST_FAULTY_STEP) & (steps <= LAST_FAULTY_STEP)
    noise = physics._draw_noise(physics.stream(SEED, 3))
    run = physics._run_steps(noise, (healthy, faulty), during)
    cluster = build_cluster()
    fabric = observe(run, seed=SEED)
    write_nccl(directory / "nccl", cluster, seed=SEED)
    write_megatron(directory / "train" / "node04.log", run, seed=SEED)
    write_step_records(directory / "steps", run)
    write_switches(directory / "switches", cluster, fabric, end=run.duration, seed=SEED)


class Replay:
    """Writes the logs of `source` to `target` as they came, at any pace; times are Unix times.

    A log grows by pieces that end anywhere in a line; a snapshot is there in halves.
    """

    def __init__(self, source: Path, target: Path) -> None:
        self._target = target
        self._pieces = sorted(
            (moment, path, number, text)
            for path, pieces in _files(source)
            for number, (moment, text) in enumerate(pieces)
        )
        self.begin = workload.JOB_START.timestamp()
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
        snapshot = re.search(r"(\d{8}_\d{6})_", path.name)
        if snapshot is not None:
            moment = datetime.strptime(snapshot[1], "%Y%m%d_%H%M%S").replace(tzinfo=UTC)
            content = path.read_bytes()
            half = len(content) // 2
            stamp = moment.timestamp()
            yield name, [(stamp, content[:half]), (stamp + 2, content[half:])]
        else:
            plain = name.removesuffix(".gz").replace(".parquet", ".csv")
            yield plain, list(_pieces(_text(path)))


def _pieces(text: str) -> Iterator[tuple[float, bytes]]:
    """Cut a log a little behind the begin of each line: the last line is always there in part."""
    moment = workload.JOB_START.timestamp()
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
