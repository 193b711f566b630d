"""Logs are rotated in every way logrotate has, with an ingest at any moment: each line counts once.

A log is written line by line; what an ingest has seen of it, however it was named then and is named
now, is in the store once.
"""

import gzip
import json
import os
import shutil
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricobs.continuation import earlier_names, live_names
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

LINE = '{{"step": {0}, "rank": 0, "step_time_ms": 10.0}}\n'
HEADER = LINE.format(0)  # all logs begin alike
LIVE = "app.log"

Look = Callable[[], None]


class Logged:
    """A log that is written, rotated and read; `seen` are the steps an ingest has had a look at."""

    def __init__(self, folder: Path) -> None:
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True)
        self.store = Store(folder / "store")
        self.seen: set[int] = set()
        self._steps = count(1)
        self._days = count(20250101)
        self._open = self.logs / LIVE
        self._open.write_text(HEADER)

    def write(self, lines: int) -> None:
        """Append lines to whatever the writer has open."""
        with self._open.open("a") as file:
            for _ in range(lines):
                file.write(LINE.format(next(self._steps)))

    def look(self) -> None:
        ingest([self.logs], self.store, Options())
        for path in self.logs.iterdir():
            whole = [line for line in read(path).splitlines() if line.endswith("}")]
            self.seen.update(json.loads(line)["step"] for line in whole)
        self.seen.discard(0)

    def rename(self, kept: int, look: Look) -> None:
        """`create`: the writer keeps the renamed file open until it is told."""
        self._shift(kept, look)
        self._open = (self.logs / LIVE).rename(self.logs / f"{LIVE}.1")
        look()
        (self.logs / LIVE).write_text(HEADER)
        look()
        self.write(1)
        look()
        self._open = self.logs / LIVE

    def copytruncate(self, kept: int, look: Look) -> None:
        self._shift(kept, look)
        text = (self.logs / LIVE).read_bytes()
        copy = self.logs / f"{LIVE}.1"
        copy.write_bytes(text[: len(text) // 2])
        look()
        copy.write_bytes(text)
        look()
        (self.logs / LIVE).write_bytes(b"")
        look()
        self.write_header()

    def compress(self, kept: int, look: Look) -> None:
        self.rename(kept, look)
        pack(self.logs / f"{LIVE}.1", look)

    def delaycompress_dateext(self, kept: int, look: Look) -> None:
        for old in sorted(self.logs.glob(f"{LIVE}-????????")):
            pack(old, look)
        dated = self.logs / f"{LIVE}-{next(self._days)}"
        self._open = (self.logs / LIVE).rename(dated)
        look()
        (self.logs / LIVE).write_text(HEADER)
        self.write(1)
        look()
        self._open = self.logs / LIVE

    def write_header(self) -> None:
        with self._open.open("a") as file:
            file.write(HEADER)

    def _shift(self, kept: int, look: Look) -> None:
        """Give the older ones the next number, and remove what is too old."""
        for number in range(kept, 0, -1):
            for ending in ("", ".gz"):
                path = self.logs / f"{LIVE}.{number}{ending}"
                if path.exists() and number == kept:
                    path.unlink()
                elif path.exists():
                    path.rename(self.logs / f"{LIVE}.{number + 1}{ending}")
                    look()


def pack(path: Path, look: Look) -> None:
    """Compress as gzip does: both files are there until the new one is whole."""
    packed = path.with_name(f"{path.name}.gz")
    data = gzip.compress(path.read_bytes())
    packed.write_bytes(data[: len(data) // 2])
    look()
    packed.write_bytes(data)
    look()
    path.unlink()
    look()


def read(path: Path) -> str:
    if path.suffix != ".gz":
        return path.read_text()
    try:
        return gzip.decompress(path.read_bytes()).decode()
    except EOFError:
        return ""


def steps(store: Path) -> list[int]:
    found = "SELECT step FROM steps WHERE step > 0 ORDER BY step"
    rows = open_session(store, found).sql(found).fetchall()
    return [step for (step,) in rows]


WAYS = ("rename", "copytruncate", "compress", "delaycompress_dateext")
MOMENTS = st.lists(st.booleans(), min_size=60, max_size=60)


@pytest.mark.parametrize("way", WAYS)
@settings(
    max_examples=int(os.environ.get("FABRICOBS_ROTATIONS", "3")),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(lines=st.lists(st.integers(0, 3), min_size=3, max_size=3), moments=MOMENTS)
def test_every_line_counts_once(
    tmp_path_factory: pytest.TempPathFactory, way: str, lines: list[int], moments: list[bool]
) -> None:
    log = Logged(tmp_path_factory.mktemp(way))
    chosen = iter(moments)

    def look() -> None:
        if next(chosen, False):
            log.look()

    for number in lines:
        log.write(number)
        look()
        log.write(1)
        getattr(log, way)(3, look)
        look()
    log.look()
    assert steps(log.store.path) == sorted(log.seen)
    folder = log.logs.parent
    shutil.rmtree(folder)


def test_each_row_names_its_line(tmp_path: Path) -> None:
    log = Logged(tmp_path)
    log.write(2)
    log.look()
    log.write(2)
    log.compress(3, lambda: None)
    log.look()
    rows = open_session(log.store.path, "steps files").sql(
        "SELECT parse_filename(path), line, step FROM steps JOIN files USING (file_id) "
        "WHERE step > 0 ORDER BY step"
    )
    assert rows.fetchall() == [(f"{LIVE}.1.gz", step + 1, step) for step in range(1, 6)]


def test_logs_of_several_hosts_that_begin_alike_are_several(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    store = Store(tmp_path / "store")
    for host in ("a", "b"):
        (logs / host).mkdir(parents=True)
        (logs / host / LIVE).write_text(HEADER + LINE.format(1))
    ingest([logs], store, Options())
    for number, host in enumerate(("a", "b"), 2):
        with (logs / host / LIVE).open("a") as file:
            file.write(LINE.format(number))
        (logs / host / LIVE).rename(logs / host / f"{LIVE}.1")
        (logs / host / LIVE).write_text(HEADER + LINE.format(number + 2))
    ingest([logs], store, Options())
    assert steps(store.path) == [1, 1, 2, 3, 4, 5]


def test_ranks_that_begin_alike_are_no_rotations(tmp_path: Path) -> None:
    """Numbers in names are ranks too: what stands where it stood has not been rotated."""
    logs = tmp_path / "logs"
    logs.mkdir()
    store = Store(tmp_path / "store")
    (logs / "train.0").write_text(HEADER + LINE.format(1))
    ingest([logs], store, Options())
    (logs / "train.1").write_text(HEADER + LINE.format(1) + LINE.format(2))
    ingest([logs], store, Options())
    assert steps(store.path) == [1, 1, 2]


def test_samples_that_are_equal_are_several(tmp_path: Path) -> None:
    """Counters that stood still, kept as `.1`, are two samples: they are of two times."""
    logs = tmp_path / "leaf01"
    logs.mkdir()
    store = Store(tmp_path / "store")
    text = "Port xmit wait: 5\n"
    for name, at in (("counters.txt.1", 1_700_000_000), ("counters.txt", 1_700_000_600)):
        (logs / name).write_text(text)
        os.utime(logs / name, (at, at))
        ingest([logs], store, Options())
    formats = "SELECT count(*) FROM files WHERE repeats IS NOT NULL AND formats <> ''"
    assert open_session(store.path, formats).sql(formats).fetchall() == [(0,)]


def test_a_log_that_is_rotated_while_it_is_read(tmp_path: Path) -> None:
    """A writer that rotates as fast as it can beside ingests one after another."""
    log = Logged(tmp_path)
    stop = Event()
    written = count(1)
    last = [0]

    def work() -> None:
        live = log.logs / LIVE
        for number in written:
            with live.open("a") as file:
                file.write(LINE.format(number))
            last[0] = number
            if number % 40 == 0:
                for old in range(30, 0, -1):
                    path = log.logs / f"{LIVE}.{old}"
                    if path.exists():
                        path.rename(log.logs / f"{LIVE}.{old + 1}")
                live.rename(log.logs / f"{LIVE}.1")
                live.write_text(HEADER)
            time.sleep(0.002)
            if stop.is_set() or number > 1100:
                return

    writer = Thread(target=work)
    writer.start()
    for _ in range(6):
        ingest([log.logs], log.store, Options())
    stop.set()
    writer.join()
    ingest([log.logs], log.store, Options())
    assert steps(log.store.path) == list(range(1, last[0] + 1))


def test_names_before_a_rotation() -> None:
    assert list(earlier_names("app.log.2.gz")) == [
        "app.log.2", "app.log.1", "app.log.0", "app.log"
    ]  # fmt: skip
    assert list(earlier_names("app-20250131.log")) == ["app.log"]
    assert list(live_names("app.log-2025-01-31.gz")) == ["app.log-2025-01-31", "app.log"]
    assert list(earlier_names("nccl.host1.12345.log")) == []
    assert list(earlier_names(LIVE)) == []
