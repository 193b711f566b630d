"""Jobs of which collectives tell: one call a step or hundreds, of all shapes, in drawn jobs.

Every job runs call by call: a call begins on a rank when the rank is ready and the call before has
ended, and ends on all ranks when the last has come and the transfer is done.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from fabricobs.diagnosis.findings import SEVERITIES, Diagnosis, Finding
from fabricobs.diagnosis.run import diagnose
from fabricobs.store.arrow import table_schema
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 2, 9)
GPUS_A_HOST = 4
WARM_UP = 12
Times = NDArray[np.float64]


@dataclass(frozen=True)
class Job:
    """A job's shape: `calls` collectives a step, in one of three `order`s.

    `burst`: all calls after the computation; `layers`: computation before each, which waits for the
    call before; `overlap`: computation goes on during the calls.
    """

    calls: int
    order: str
    seed: int
    ranks: int = 32
    steps: int = 160
    every: int = 1  # step that the Inspector records
    lines: int = 0  # steps from one line of the trainer to the next; 0: no line
    equal: bool = True  # sizes
    communicators: int = 1
    extra: int = 0  # steps from one extra call to the next
    pause: int = 0  # steps from one checkpoint to the next
    noted_late_ms: float = 100.0
    spread: float = 0.003  # of the ranks' usual computation
    jitter: float = 0.01
    slow: tuple[int, ...] = ()
    slower: float = 1.0  # computation of the slow ones, from the middle of the job on
    storm: float = 1.0  # transfers from the middle of the job on

    @property
    def onset(self) -> int:
        return self.steps // 2


def run(job: Job) -> tuple[dict[str, pa.Table], Times]:
    """Return the rows of a job, and the length of each of its steps in ms."""
    chance = np.random.default_rng(job.seed)
    usual = 2500 * (1 + job.spread * chance.standard_normal(job.ranks))
    slow = np.isin(np.arange(job.ranks), job.slow)
    sizes = np.full(job.calls, 64.0) if job.equal else chance.integers(8, 64, job.calls)
    calls: list[tuple[int, int, int, float, Times]] = []  # communicator, seq, size, end, durations
    seqs = [0] * job.communicators
    lengths, now = [], 0.0
    for step in range(job.steps):
        late = step >= job.onset
        work = usual * (1 + job.jitter * chance.standard_normal(job.ranks))
        work = np.where(slow & late, work * job.slower, work)
        transfers = 500 * sizes / sizes.sum() * (job.storm if late else 1.0)
        transfers = transfers * (1 + 0.01 * chance.standard_normal(job.calls))
        begin = end = now
        for call, transfer in enumerate(transfers):
            if job.order == "overlap":
                ready = begin + work * (1 / 3 + 2 / 3 * (call + 1) / job.calls)
            elif job.order == "layers":
                ready = end + work * (1 / job.calls) * (
                    1 + 0.02 * chance.standard_normal(job.ranks)
                )
            else:
                ready = begin + work if call == 0 else np.full(job.ranks, end + 0.05)
            came = np.maximum(ready, end)
            end = float(came.max() + transfer)
            group = call * job.communicators // job.calls
            seqs[group] += 1
            if step % job.every == 0:
                calls.append((group, seqs[group], int(1e6 * sizes[call]), end, end - came))
        if job.extra and step % job.extra == job.extra - 1:
            seqs[0] += 1
            came = end + np.abs(chance.normal(0, 1, job.ranks))
            end = float(came.max() + 0.3)
            if step % job.every == 0:
                calls.append((0, seqs[0], 4096, end, end - came))
        end = max(end, float((begin + work).max())) + 60
        lengths.append(end - begin)
        now = end + (9000.0 if job.pause and step % job.pause == job.pause - 1 else 0.0)
    return {"collectives": _calls(job, calls, chance), **_lines(job, np.array(lengths))}, np.array(
        lengths
    )


def _calls(
    job: Job, calls: list[tuple[int, int, int, float, Times]], chance: np.random.Generator
) -> pa.Table:
    count, ranks = len(calls), np.arange(job.ranks)
    ends = np.array([call[3] for call in calls])[:, None]
    noted = ends + chance.uniform(0, job.noted_late_ms, (count, job.ranks))

    def of_call(values: list[object]) -> list[object]:
        return [value for value in values for _ in ranks]

    def of_rank(values: list[object]) -> list[object]:
        return values * count

    return _table(
        "collectives",
        count * job.ranks,
        file_id=["c"] * (count * job.ranks),
        comm_id=of_call([f"0xa{call[0]}" for call in calls]),
        rank=of_rank(ranks.tolist()),
        global_rank=of_rank(ranks.tolist()),
        host=of_rank([f"node{rank // GPUS_A_HOST:02d}" for rank in ranks]),
        pid=of_rank([100 + rank for rank in ranks]),
        nranks=[job.ranks] * (count * job.ranks),
        nodes=[job.ranks // GPUS_A_HOST] * (count * job.ranks),
        op=["AllReduce"] * (count * job.ranks),
        seq=of_call([call[1] for call in calls]),
        bytes=of_call([call[2] for call in calls]),
        ts=[START + timedelta(milliseconds=float(ms)) for ms in noted.ravel()],
        duration_us=(1000 * np.concatenate([call[4] for call in calls])).tolist(),
    )


def _lines(job: Job, lengths: Times) -> dict[str, pa.Table]:
    """Return what the trainer prints: the mean of the steps since the line before."""
    if not job.lines:
        return {}
    paused = np.arange(job.steps) % job.pause == job.pause - 1 if job.pause else np.zeros(job.steps)
    ends = np.cumsum(lengths + 9000 * np.concatenate([[0], paused[:-1]]))
    steps = range(job.lines, job.steps + 1, job.lines)
    table = _table(
        "steps",
        len(steps),
        file_id=["s"] * len(steps),
        line=list(steps),
        step=list(steps),
        ts=[START + timedelta(milliseconds=float(ends[step - 1])) for step in steps],
        step_time_ms=[float(lengths[step - job.lines : step].mean()) for step in steps],
    )
    return {"steps": table}


def _table(name: str, count: int, **columns: list[object]) -> pa.Table:
    schema = table_schema(name)
    given = [pa.array(columns.get(f.name, [None] * count), type=f.type) for f in schema]
    return pa.Table.from_arrays(given, schema=schema)


@pytest.fixture
def judge(tmp_path: Path) -> Callable[[Job], tuple[Diagnosis, Times]]:
    """Run a job, and diagnose what it leaves."""

    def judged(job: Job) -> tuple[Diagnosis, Times]:
        rows, lengths = run(job)
        store = Store(tmp_path / f"store{len(list(tmp_path.iterdir()))}")
        store.create()
        store.append("given", rows)
        return diagnose(store.path), lengths

    return judged


Judge = Callable[[Job], tuple[Diagnosis, Times]]


def of_kind(found: Diagnosis, kind: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.kind == kind]


def loss_of(job: Job, lengths: Times) -> float:
    """Return what the fault costs from its onset on: the same job without it tells."""
    healthy = run(replace(job, slower=1.0, storm=1.0))[1]
    return float(1 - healthy[job.onset :].sum() / lengths[job.onset :].sum())


SHAPES = [
    Job(1, "burst", 1),
    Job(1, "burst", 2, lines=5),
    Job(2, "burst", 3),
    Job(2, "burst", 4, every=2, steps=240, pause=30),
    Job(3, "burst", 5, lines=1, extra=10, pause=50),
    Job(3, "burst", 6, lines=5, pause=40),
    Job(3, "burst", 7, every=5, steps=400),
    Job(3, "burst", 8, every=5, steps=400, lines=5),
    Job(5, "burst", 9, equal=False, every=2, steps=240, lines=1),
    Job(12, "burst", 10, communicators=2, lines=1),
    Job(24, "burst", 11, extra=7, ranks=16),
    Job(2, "layers", 12, lines=1),
    Job(8, "layers", 13, equal=False, lines=1),
    Job(60, "layers", 14, lines=1, ranks=16, noted_late_ms=1.0),
    Job(200, "layers", 15, lines=5, ranks=16, steps=120, every=2, noted_late_ms=1.0),
    Job(3, "overlap", 16, lines=1),
    Job(8, "overlap", 17, lines=1, equal=False),
    Job(40, "overlap", 18, lines=5, ranks=16, steps=320),
]


def named(job: Job) -> str:
    return f"{job.calls}-{job.order}-{job.seed}"


@pytest.mark.parametrize("job", SHAPES, ids=named)
class TestALateRank:
    """The host behind several calls a step was missed: its later calls show no wait."""

    def test_is_named_since_it_is_late_with_its_cost(self, judge: Judge, job: Job) -> None:
        slow = (5,) if job.seed % 2 else (8, 9, 10, 11)
        job = replace(job, slow=slow, slower=1.15)
        found, lengths = judge(job)
        (late,) = of_kind(found, "straggler")
        if len(slow) == 1:
            assert [entity.rank for entity in late.entities] == [5]
        else:
            assert [(e.type, e.host) for e in late.entities] == [("host", "node02")]
        assert late.start_step == pytest.approx(job.onset, abs=6 * max(job.every, job.lines, 1))
        assert late.loss_share == pytest.approx(loss_of(job, lengths), abs=0.03)
        assert SEVERITIES.index(late.severity) >= SEVERITIES.index("medium")
        assert not of_kind(found, "throughput_drop")
        worth = [each.saved_share for each in found.what_if]
        assert all(share <= loss_of(job, lengths) + 0.04 for share in worth)

    def test_ranks_that_spread_as_gpus_do_are_alike(self, judge: Judge, job: Job) -> None:
        found, _ = judge(replace(job, spread=0.008, jitter=0.02))
        assert found.findings == ()
        told = found.verdict.questions[1]
        assert f"{job.ranks} ranks arrive at their collectives alike" in told.evidence


@pytest.mark.parametrize("job", [job for job in SHAPES if job.order == "burst"], ids=named)
class TestNothingButCollectives:
    """No trainer's line: each bucket was called a step, and a storm left the rhythm steady."""

    def test_steps_are_those_of_the_job(self, tmp_path: Path, job: Job) -> None:
        rows, lengths = run(replace(job, lines=0))
        store = Store(tmp_path / "store")
        store.create()
        store.append("given", rows)
        with open_session(store.path, "step_times") as session:
            told = session.sql("SELECT max(step), median(step_time_ms) FROM step_times")
            steps, usual_ms = told.fetchall()[0]
        assert steps == pytest.approx(job.steps, rel=0.03)
        assert usual_ms == pytest.approx(float(np.median(lengths)), rel=0.05)

    def test_longer_transfers_are_dated_and_priced(self, judge: Judge, job: Job) -> None:
        job = replace(job, lines=0, storm=2.3)
        found, lengths = judge(job)
        (slower,) = found.findings
        assert slower.kind == "throughput_drop"
        assert slower.start_step == pytest.approx(job.onset, abs=4 * job.every)
        assert slower.loss_share == pytest.approx(loss_of(job, lengths), abs=0.03)
        assert "longer collectives" in slower.explanation


def _ends_told(folder: Path, rows: dict[str, pa.Table]) -> dict[int, datetime]:
    store = Store(folder)
    store.create()
    store.append("given", rows)
    with open_session(store.path, "step_ends") as session:
        return dict(session.sql("SELECT step, ts FROM step_ends WHERE ts IS NOT NULL").fetchall())


def _without_times(rows: dict[str, pa.Table], first: int) -> dict[str, pa.Table]:
    """Return the rows with steps numbered from `first` on, whose lines tell no times."""
    steps = rows["steps"]
    numbers = pa.array([first - 1 + step for step in steps["step"].to_pylist()], pa.int64())
    none = pa.nulls(len(steps), steps.schema.field("ts").type)
    steps = steps.set_column(steps.schema.get_field_index("step"), "step", numbers)
    return rows | {"steps": steps.set_column(steps.schema.get_field_index("ts"), "ts", none)}


@pytest.mark.parametrize("seed", range(8))
def test_steps_without_times_have_those_of_the_collectives_they_change_with(
    tmp_path: Path, seed: int
) -> None:
    """A cause with a time had no cost, and the longer steps no cause: "steps without times"."""
    chance = np.random.default_rng(seed)
    job = Job(
        calls=int(chance.choice([1, 8])),
        order="burst",
        seed=seed,
        steps=int(chance.integers(120, 240)),
        lines=int(chance.choice([1, 1, 2, 5])),
        pause=int(chance.choice([0, 40])),
        storm=float(chance.choice([1.0, 1.4])),
        jitter=0.02,
    )
    rows, _ = run(job)
    first = int(chance.choice([1, 5001]))
    told = _ends_told(tmp_path / "s", _without_times(rows, first))
    true = dict(
        zip(rows["steps"]["step"].to_pylist(), rows["steps"]["ts"].to_pylist(), strict=True)
    )
    # Of forty lines, each of the mean of five steps, it cannot always be told.
    assert len(told) >= 0.9 * len(true) or (job.lines == 5 and not told)
    for step, moment in told.items():
        assert abs(moment - true[step - first + 1]) < timedelta(seconds=1)
    # The lengths of another job's steps are not these.
    other, _ = run(replace(job, seed=seed + 100, storm=1.0))
    assert not _ends_told(tmp_path / "o", _without_times(rows | {"steps": other["steps"]}, first))
