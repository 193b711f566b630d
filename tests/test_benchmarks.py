"""Runs of benchmarks against each other: which are alike, and which ran before which."""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.querying import stored_queries
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

SIZE = 1 << 30
BASE = datetime(2026, 3, 1, 9, tzinfo=UTC)


@dataclass(frozen=True)
class Sweep:
    """One run of all_reduce_perf as its output tells it."""

    hosts: tuple[str, ...] = ("node1", "node2")
    gpus: int = 4
    model: str = "NVIDIA H100 80GB HBM3"
    version: str = "22807"
    busbw: float = 90.0
    stamp: datetime | None = None
    with_ranks: bool = True

    def output(self) -> str:
        """Return what nccl-tests would print."""
        nranks = self.gpus * len(self.hosts)
        factor = 2 * (nranks - 1) / nranks
        half = (
            f"{factor * SIZE / self.busbw / 1e3:.1f} {self.busbw / factor:.2f} {self.busbw:.2f} 0"
        )
        stamp = f" {self.stamp:%Y-%m-%d %H:%M:%S}" if self.stamp else ""
        ranks = [
            f"#  Rank {r:2} Group  0 Pid {900 + r} on {self.hosts[r // self.gpus]} "
            f"device {r % self.gpus:2} [0x{r:02x}] {self.model}"
            for r in range(nranks)
        ]
        lines = [
            f"# nccl-tests version 2.17.6 (0f1e2d3) nccl-headers={self.version} "
            f"nccl-library={self.version}",
            "# Collective test starting: all_reduce_perf",
            *(ranks if self.with_ranks else []),
            "#       size         count      type   redop    root     time   algbw   busbw #wrong"
            "     time   algbw   busbw #wrong" + ("  timestamp" if stamp else ""),
            f"{SIZE:12} {SIZE // 4:12} float sum -1 {half} {half}{stamp}",
            "# Out of bounds values : 0 OK",
        ]
        return "\n".join(lines) + "\n"


def _write(path: Path, run: Sweep, changed: datetime) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(run.output())
    os.utime(path, (changed.timestamp(),) * 2)


def _accepted(store: Store) -> dict[str, tuple[float | None, str]]:
    """Return share of the run before, and verdict, by file; the same whenever it is asked."""
    query = stored_queries()["acceptance"]
    answers = []
    session = open_session(store.path, query.sql)
    for _ in range(5):
        cursor = session.execute(query.sql)
        names = [column[0] for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        answers.append({row["path"]: (row["share_of_before"], row["verdict"]) for row in rows})
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


Place = Callable[[Path, int, str, Sweep], tuple[Path, Sweep, datetime]]


def _stated(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """A time on each row; names and changes of the files say nothing."""
    return folder / name, replace(run, stamp=BASE + timedelta(hours=number)), BASE


def _by_day(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """A folder a day, all copied at once, long after."""
    day = BASE + timedelta(days=number)
    return folder / f"{day:%Y-%m-%d}" / name, run, BASE + timedelta(days=300)


def _by_name(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """A moment in the file's name, some within a minute of each other."""
    moment = BASE + timedelta(seconds=40 * number)
    return folder / f"{name}_{moment:%Y%m%d_%H%M%S}.out", run, BASE


def _by_change(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """Nothing but the times at which the files were last changed."""
    return folder / name, run, BASE + timedelta(minutes=7 * number)


def _by_nothing(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """Files of one copy, in one folder."""
    return folder / name, run, BASE + timedelta(seconds=number)


def _by_one_day(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """A folder of one day, copied later."""
    return folder / f"{BASE:%Y-%m-%d}" / name, run, BASE + timedelta(days=9, minutes=9 * number)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("place", "ordered"),
    [
        (_stated, True),
        (_by_day, True),
        (_by_name, True),
        (_by_change, True),
        (_by_nothing, False),
        (_by_one_day, False),
    ],
)
def test_the_run_before_is_the_last_earlier_one_as_far_as_times_tell(
    tmp_path: Path, place: Place, ordered: bool, seed: int
) -> None:
    chance = random.Random(seed)
    names = chance.sample([f"{letter}.txt" for letter in "abcdefgh"], 4)
    speeds = [90 * chance.uniform(0.6, 1) for _ in names]
    drawn = [place(tmp_path / "logs", n, names[n], Sweep(busbw=speeds[n])) for n in range(4)]
    for each in drawn:
        _write(*each)
    store = Store(tmp_path / "s")
    paths = [path for path, *_ in drawn]
    for one in chance.sample(paths, 4) if seed else [tmp_path / "logs"]:
        ingest([one], store, Options())
    shares = [_accepted(store)[str(path)][0] for path in paths]
    if not ordered:
        assert shares == [None] * 4
        return
    assert shares[0] is None
    for n in range(1, 4):
        assert shares[n] == pytest.approx(speeds[n] / speeds[n - 1], abs=0.002)


OTHERS = {
    "hosts": {"hosts": ("node1", "node3")},
    "ranks": {"gpus": 8},
    "nodes": {"hosts": ("node1", "node2", "node3")},
    "model": {"model": "NVIDIA A100-SXM4-80GB"},
    "version": {"version": "22304"},
    "no ranks told": {"with_ranks": False},
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_differs_or_is_not_stated_is_never_the_run_before(tmp_path: Path, other: str) -> None:
    """Also two runs that both state no hosts: they may be of two clusters."""
    runs = [Sweep(), replace(Sweep(busbw=40), **OTHERS[other])]
    if other == "no ranks told":
        runs[0] = replace(runs[0], with_ranks=False)
    for number, run in enumerate(runs):
        day = BASE + timedelta(days=number)
        _write(tmp_path / "logs" / f"{day:%Y-%m-%d}" / "a.txt", run, day)
    store = Store(tmp_path / "s")
    ingest([tmp_path / "logs"], store, Options())
    told = _accepted(store)
    assert [share for share, _ in told.values()] == [None, None]
    verdicts = {verdict for _, verdict in told.values()}
    assert verdicts == ({"ok", "slower than alike runs"} if other == "hosts" else {"not judged"})


def test_runs_of_one_file_are_ordered_by_the_file(tmp_path: Path) -> None:
    text = "".join(Sweep(busbw=speed).output() for speed in (90, 60, 75))
    (tmp_path / "all.txt").write_text(text)
    store = Store(tmp_path / "s")
    ingest([tmp_path / "all.txt"], store, Options())
    query = stored_queries()["acceptance"]
    rows = open_session(store.path, query.sql, keep=True).sql(
        f"SELECT share_of_before FROM ({query.sql.rstrip().rstrip(';')}) ORDER BY run"
    )
    assert [share for (share,) in rows.fetchall()] == [
        None, pytest.approx(60 / 90, abs=0.002), pytest.approx(75 / 60, abs=0.002),
    ]  # fmt: skip
