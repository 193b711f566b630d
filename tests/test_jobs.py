"""Several jobs in one store: told apart, listed, and each judged as if it were alone."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import Rows, Run
from fabricobs.diagnosis.findings import Diagnosis, Entity, Finding
from fabricobs.diagnosis.jobs import JobError, _of_runs
from fabricobs.diagnosis.run import diagnose
from fabricobs.diagnosis.standing import LOSS_PAST, end_of, headline, in_past
from fabricobs.report.jobs import listing_text, restarts, seconds_between
from fabricobs.report.wording import cost_words, loss_words
from fabricobs.store.arrow import table_schema
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session, runs_of

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 2, 9)
GPUS = 4
MakeStore = Callable[[Rows], Path]


@dataclass(frozen=True)
class Job:
    """One launch as it is drawn: its ranks on `hosts`, and what its logs tell."""

    name: str
    hosts: tuple[str, ...]
    begin: datetime
    given: str | None = None
    nccl: bool = True
    first_step: int = 1
    steps: int = 80
    run: int = 1
    slow: int | None = None  # a rank that computes longer
    slow_place: int | None = None  # all ranks of a host do
    by_host: bool = False  # folders are named after hosts, files after times, none after jobs

    @property
    def ranks(self) -> int:
        return GPUS * len(self.hosts)

    @property
    def end(self) -> datetime:
        return self.begin + timedelta(seconds=self.steps)

    def path(self, host: str, name: str) -> str:
        """Where a file of one host is kept."""
        if self.by_host:
            return f"/logs/{host}/{name}-{self.begin:%d%H%M%S}.log"
        return f"/logs/{self.name}/run{self.run}/{name}.log"

    def rows(self) -> Rows:
        """The rows its files would give: per-rank steps, and NCCL's ranks where it logs."""
        chance = np.random.default_rng(crc32(f"{self.name} {self.run}".encode()))
        rows: Rows = {"files": [], "steps": [], "nccl_ranks": []}
        for rank in range(self.ranks):
            file = f"{self.name}-{self.run}-steps-{rank}"
            path = self.path(self.hosts[rank // GPUS], f"steps{rank}")
            rows["files"].append({"file_id": file, "job": self.given, "path": path})
        now = self.begin
        for step in range(self.first_step, self.first_step + self.steps):
            compute = chance.normal(700, 3, self.ranks)
            if self.slow is not None:
                compute[self.slow] *= 1.3
            if self.slow_place is not None:
                compute[GPUS * self.slow_place : GPUS * (self.slow_place + 1)] *= 1.15
            now += timedelta(milliseconds=float(compute.max()) + 210)
            for rank in range(self.ranks):
                rows["steps"].append(
                    {
                        "file_id": f"{self.name}-{self.run}-steps-{rank}",
                        "job": self.given,
                        "line": step,
                        "step": step,
                        "rank": rank,
                        "host": self.hosts[rank // GPUS],
                        "ts": now,
                        "ts_source": "inline",
                        "step_time_ms": float(compute.max()) + 210,
                        "compute_ms": float(compute[rank]),
                        "comm_ms": float(compute.max() - compute[rank]) + 200,
                    }
                )
        if self.nccl:
            self._add_nccl(rows)
        return rows

    def _add_nccl(self, rows: Rows) -> None:
        world = f"0x{crc32(f'{self.name} {self.run} world'.encode()):015x}"
        for number, host in enumerate(self.hosts):
            file = f"{self.name}-{self.run}-nccl-{host}"
            path = self.path(host, f"nccl-{host}")
            rows["files"].append({"file_id": file, "job": self.given, "path": path})
            for local in range(GPUS):
                rows["nccl_ranks"].append(
                    {
                        "file_id": file,
                        "job": self.given,
                        "line": local + 1,
                        "host": host,
                        # Processes of other launches had the same ids.
                        "pid": 1000 + local,
                        "comm": "0x7f00",
                        "comm_id": world,
                        "rank": GPUS * number + local,
                        "nranks": self.ranks,
                        "nodes": len(self.hosts),
                        "cuda_device": local,
                        "init_state": "complete",
                        "network": "IB",
                        "version": f"2.2{self.run}.{len(self.name)}",
                        # Nothing else would tell which steps are of which launch.
                        "ts": self.begin - timedelta(seconds=9) if self.by_host else None,
                        "ts_source": "inline" if self.by_host else "none",
                    }
                )


def together(*parts: Rows) -> Rows:
    found: Rows = {}
    for part in parts:
        for table, rows in part.items():
            found.setdefault(table, []).extend(rows)
    return found


def made(path: Path, rows: Rows) -> Path:
    store = Store(path)
    store.create()
    tables = {t: pa.Table.from_pylist(r, schema=table_schema(t)) for t, r in rows.items() if r}
    store.append("given", tables)
    return store.path


def said(found: Diagnosis, job: str | None = None) -> list[tuple[object, ...]]:
    """What a job is told: the answers, and its findings but for the job's name.

    What goes on when a job ends is over where the data of others go on: the tense is left out.
    """

    def timeless(text: str) -> str:
        for f in own:
            for words in (headline(f), f"{f.title}.{end_of(f)}", f"{f.title}.", f.title):
                text = text.replace(words, f.kind)
        return in_past(text, LOSS_PAST)

    each = next((j for j in found.jobs if j.run.label == job), None)
    verdict = found.verdict if each is None else each.verdict
    own = [f for f in found.findings if each is None or f.id in each.findings]
    entities = [
        sorted((e.type, e.rank, e.host or "") for e in f.entities if e.type != "job") for f in own
    ]
    return [
        (timeless(verdict.sentence),),
        *((q.question, q.answer, timeless(q.evidence)) for q in verdict.questions),
        *sorted(
            (f.kind, f.explanation, f.loss_share or 0.0, str(e))
            for f, e in zip(own, entities, strict=True)
        ),
    ]


@st.composite
def sites(draw: st.DrawFn) -> list[Job]:
    """One to four jobs: at once or one after another, on the same hosts or others, restarted."""
    launches: list[Job] = []
    by_host = draw(st.booleans())
    begin = START
    for number in range(draw(st.integers(1, 4))):
        at_once = bool(launches) and draw(st.booleans())
        own = at_once or draw(st.booleans())
        prefix = f"n{number}" if own else "n"
        size = draw(st.integers(1, 3))
        if at_once:
            begin = launches[-1].begin + timedelta(seconds=draw(st.integers(0, 30)))
        elif launches:
            begin = launches[-1].end + timedelta(minutes=draw(st.sampled_from([2, 90, 600])))
        job = Job(
            name=f"job{'abcd'[number]}",
            hosts=tuple(f"{prefix}x{index}" for index in range(size)),
            begin=begin,
            given=draw(st.sampled_from([None, f"given{number}"])),
            # Steps by host without NCCL's logs beside another job at that time: whose is not known.
            nccl=by_host or draw(st.booleans()),
            by_host=by_host,
            slow=draw(st.sampled_from([None, size * GPUS - 1])) if size > 1 else None,
        )
        launches.append(job)
        if not at_once and draw(st.booleans()):
            again = job.end + timedelta(minutes=draw(st.sampled_from([1, 100])))
            launches.append(replace(job, run=2, begin=again, first_step=41))
    return launches


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(launches=sites())
def test_drawn_jobs_are_told_apart(
    launches: list[Job], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = made(tmp_path_factory.mktemp("s") / "store", together(*(j.rows() for j in launches)))
    runs = {(run.begin, run.hosts): run for run in runs_of(store)}
    assert len(runs) == len(launches), listing_text(runs_of(store))
    for job in launches:
        begin = min(row["ts"] for row in job.rows()["steps"])  # type: ignore[type-var]
        if job.nccl and job.by_host:
            begin = job.begin - timedelta(seconds=9)
        run = runs[begin, job.hosts]  # type: ignore[index]
        assert (run.ranks, run.first_step) == (job.ranks, job.first_step)
        assert run.last_step == job.first_step + job.steps - 1
        assert run.nranks == (job.ranks if job.nccl else None)
        # Without a job's name in path or option, the same processes anew are the next run.
        if job.run == 2:
            assert run.number >= 2
            assert run.replayed_steps >= 40
        elif not job.by_host or job.given:
            assert (run.number, run.replayed_steps) == (1, 0)
        if job.given is not None:
            assert (run.name, run.named_by) == (job.given, "--job")
        elif not job.by_host and len(launches) > 1:
            assert run.name == job.name


SLOW = Job("first", ("a0", "a1"), START, slow=7, steps=120)
WELL = Job("second", ("b0", "b1"), START + timedelta(seconds=20), steps=120)
LATER = replace(WELL, hosts=SLOW.hosts, begin=START + timedelta(hours=3))
AGAIN = replace(SLOW, run=2, begin=START + timedelta(minutes=10), first_step=81, slow=None)


@pytest.mark.parametrize(
    "jobs",
    [[SLOW, WELL], [SLOW, LATER], [replace(SLOW, nccl=False), replace(WELL, nccl=False)]],
    ids=["at once", "one after another", "without NCCL logs"],
)
def test_each_job_is_told_what_it_is_told_alone(jobs: list[Job], tmp_path: Path) -> None:
    found = diagnose(made(tmp_path / "all", together(*(job.rows() for job in jobs))))
    assert sorted(each.run.label or "" for each in found.jobs) == ["first", "second"]
    for job in jobs:
        alone = diagnose(made(tmp_path / job.name, job.rows()))
        assert said(found, job.name) == said(alone)
    assert [f.kind for f in found.findings] == ["straggler"]
    assert found.findings[0].entities[0].job == "first"
    assert found.verdict.sentence.startswith("2 jobs: 1 with a problem. Worst is first:")


def test_the_job_with_the_problem_speaks_first_and_says_its_own_loss(tmp_path: Path) -> None:
    well, slow = replace(WELL, name="a_well"), replace(SLOW, name="z_slow")
    found = diagnose(made(tmp_path / "s", together(well.rows(), slow.rows())))
    assert [each.run.label for each in found.jobs] == ["z_slow", "a_well"]
    own, (finding,) = found.jobs[0].loss.share, found.findings
    assert own is not None and own > (found.loss.share or 0) > 0
    assert f"z_slow lost {own:.1%} of its own run." in loss_words(found)
    assert cost_words(finding).endswith(f"{finding.run_share:.1%} of all runs")
    assert {segment.job for segment in found.segments} == {"a_well", "z_slow"}


def test_a_restart_is_the_next_run_and_repeated_steps_count_once(tmp_path: Path) -> None:
    both = together(SLOW.rows(), AGAIN.rows())
    store = made(tmp_path / "s", both)
    found = diagnose(store)
    assert [(j.run.name, j.run.number) for j in found.jobs] == [("first", 1), ("first", 2)]
    assert [f.entities[0].job for f in found.findings] == ["first"]
    assert found.verdict.sentence.startswith("1 job in 2 runs: 1 with a problem")
    assert said(found, "first#2") == said(diagnose(made(tmp_path / "b", AGAIN.rows())))
    with open_session(store, "step_times jobs") as session:
        rows = session.sql("SELECT job, count(*) FROM step_times GROUP BY job ORDER BY job")
        assert rows.fetchall() == [("first", 120), ("first#2", 120)]
        rows = session.sql("SELECT job, run, replayed_steps FROM jobs ORDER BY run")
        assert rows.fetchall() == [("first", 1, 0), ("first#2", 2, 40)]


@pytest.mark.parametrize("seed", range(4))
def test_a_fault_that_outlives_restarts_is_one_finding(tmp_path: Path, seed: int) -> None:
    """It was one a run: the same host twice, with half of its cost each."""
    chance = random.Random(seed)
    rank, first_step, begin, runs = chance.randrange(SLOW.ranks), 1, START, list[Job]()
    sick = chance.choice([(True, True), (True, False, True), (False, True, True), (True,) * 3])
    for number, is_sick in enumerate(sick, start=1):
        job = replace(SLOW, run=number, begin=begin, first_step=first_step)
        runs.append(replace(job, slow=rank if is_sick else None))
        first_step += job.steps - chance.randrange(0, 60)
        begin = job.end + timedelta(minutes=chance.randint(1, 20))
    found = diagnose(made(tmp_path / "s", together(*(run.rows() for run in runs))))
    alone = [
        diagnose(made(tmp_path / f"{run.run}", run.rows())).findings[0]
        for run in runs
        if run.slow is not None
    ]
    (one,) = found.findings
    assert {one.id} == {finding.id for finding in alone}
    assert one.gpu_hours_lost == pytest.approx(sum(f.gpu_hours_lost or 0 for f in alone), abs=0.02)
    assert one.loss_share == pytest.approx(max(f.loss_share or 0.0 for f in alone), abs=0.005)
    spans = [(finding.start, finding.end, finding.start_step) for finding in alone]
    assert (one.start, one.end, one.start_step) == (spans[0][0], spans[-1][1], spans[0][2])
    assert one.state == ("ongoing" if sick[-1] else "over")
    labels = {each.run.number: each.run.label for each in found.jobs}
    for run in runs:
        has = one.id in next(j for j in found.jobs if j.run.number == run.run).findings
        assert has == (run.slow is not None)
        assert (f" {labels[run.run]} 1" in one.explanation) == has
    assert found.jobs[0].run.number == (len(runs) if sick[-1] else 2)


@pytest.mark.parametrize("moved", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_ranks_that_compute_longer_on_another_host_too_have_more_work(
    tmp_path: Path, seed: int, moved: bool
) -> None:
    """ "Swap the host" was said of a host that was one, beside the host before it."""
    chance = random.Random(seed)
    place, spare = chance.randrange(len(SLOW.hosts)), f"spare{chance.randrange(100)}"
    one = replace(SLOW, slow=None, slow_place=place)
    hosts = list(one.hosts)
    hosts[place if moved else (place + 1) % len(hosts)] = spare
    begin = one.end + timedelta(minutes=chance.randint(1, 20))
    two = replace(one, run=2, begin=begin, first_step=chance.randint(41, 81), hosts=tuple(hosts))
    found = diagnose(made(tmp_path / "s", together(one.rows(), two.rows())))
    kinds = {finding.kind for finding in found.findings}
    assert kinds == ({"workload_imbalance"} if moved else {"straggler"})
    ranks = f"{GPUS * place}-{GPUS * place + GPUS - 1}"
    for finding in found.findings:
        if moved:
            assert finding.title.startswith(f"Ranks {ranks} compute")
            assert "on other hosts" in finding.explanation
        else:
            assert [e.host for e in finding.entities] == [one.hosts[place]]
    # The run that is asked for alone has the other one beside it all the same.
    alone = diagnose(tmp_path / "s", job="first#2")
    assert {finding.kind for finding in alone.findings} == kinds


def test_steps_of_one_of_two_launches_are_said_to_be_of_either(make_store: MakeStore) -> None:
    untimed = [replace(job, by_host=False, nccl=True) for job in (SLOW, AGAIN)]
    rows = together(*(job.rows() for job in untimed))
    # One folder for all, and no time in the lines of NCCL.
    for file in rows["files"]:
        file["path"] = "/logs/all/" + str(file["file_id"])
    only_first = [row for row in rows["steps"] if "-1-" in str(row["file_id"])]
    runs = runs_of(make_store({**rows, "steps": only_first}))
    assert len(runs) == 3
    (steps,) = (run for run in runs if run.first_step is not None)
    assert steps.candidates == 2
    assert "may be part of 2 other jobs" in listing_text(runs)


def _in_one_series(jobs: list[Job], layout: str) -> Rows:
    """Files that hold all launches: one of steps, or one a rank; one of NCCL a host, untimed."""
    rows: Rows = {"files": [], "steps": [], "nccl_ranks": []}
    for number, job in enumerate(jobs):
        own = replace(job, by_host=False).rows()
        for row in own["steps"]:
            place = {
                "by rank": (row["rank"], number, row["step"]),
                "by time": (number, row["step"], row["rank"]),
                "a file a rank": (0, number, row["step"]),
                "mingled": (row["step"], row["rank"], number),
            }[layout]
            line = place[0] * 1_000_000 + place[1] * 1_000 + place[2]
            file = f"steps-{row['rank']}" if layout == "a file a rank" else "steps"
            rows["steps"].append(row | {"file_id": file, "line": line})
        for row in own["nccl_ranks"]:
            again = {"line": row["line"] + 100 * number, "pid": row["pid"] + 100 * number}
            rows["nccl_ranks"].append(row | again | {"file_id": f"nccl-{row['rank'] // GPUS}"})
    names = sorted({row["file_id"] for table in ("steps", "nccl_ranks") for row in rows[table]})
    rows["files"] = [{"file_id": name, "path": f"/logs/all/{name}.log"} for name in names]
    return rows


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("layout", ["by rank", "by time", "a file a rank", "mingled"])
def test_a_series_with_a_replay_is_split_at_the_restart(
    layout: str, replaced: bool, make_store: MakeStore
) -> None:
    hosts = (*AGAIN.hosts[:-1], "spare") if replaced else AGAIN.hosts
    jobs = [SLOW, replace(AGAIN, hosts=hosts, slow=None)]
    store = make_store(_in_one_series(jobs, layout))
    runs = runs_of(store)
    if layout == "mingled":
        assert sorted(run.nranks or 0 for run in runs) == [0, SLOW.ranks, SLOW.ranks]
        return
    steps = [(job.first_step, job.first_step + job.steps - 1) for job in jobs]
    assert [(run.first_step, run.last_step) for run in runs] == steps
    assert [run.name for run in runs] == [runs[0].name] * 2
    assert [set(run.hosts) for run in runs] == [set(job.hosts) for job in jobs]
    with open_session(store, "steps") as session:
        counted = session.sql(
            "SELECT job, count(*) FROM steps GROUP BY job ORDER BY job"
        ).fetchall()
    assert counted == [
        (run.label, job.steps * job.ranks) for run, job in zip(runs, jobs, strict=True)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_restarts_are_the_launches_of_logs_without_times(seed: int, make_store: MakeStore) -> None:
    """NCCL prints no times by default, a file a process; one log of steps has all attempts.

    What ran on other hosts, or fewer times than the steps began again, is not given any steps. A
    restart may have another host instead of one that failed, and the steps may have no times.
    """
    chance, others = random.Random(seed), random.Random(100 + seed)
    launches, hosts, timers = chance.choice([2, 2, 3]), chance.choice([1, 3]), chance.random() < 0.5
    spoilt = chance.choice(["", "", "", "hosts", "number"])
    replaced, timed_steps = others.random() < 0.5, others.random() < 0.5
    rows: Rows = {"files": [{"file_id": "train", "path": "/logs/job/train_rank0.log"}]}
    rows |= {"steps": [], "phases": [], "nccl_ranks": []}
    now, line, first, spans = START, 0, 1, []
    for number in range(launches):
        last = first + chance.randint(25, 60)
        if spoilt != "number" or not number:
            spans.append((first, last))
        for step in range(*((first, last + 1) if spans[-1][0] == first else (0, 0))):
            now, line = now + timedelta(seconds=2), line + 1
            told = {"file_id": "train", "step": step, "ts_source": "inline"}
            told = told if timed_steps else {**told, "ts_source": "none"}
            own = {"line": line, "ts": now if timed_steps else None, "rank": 0}
            rows["steps"].append(told | own | {"step_time_ms": 2e3})
            for rank in range(4 * hosts if timers else 0):
                timed = {"rank": rank, "phase": "forward", "duration_ms": 1e3}
                rows["phases"].append(told | timed | {"line": line + 1 + rank, "ts": None})
            line += 4 * hosts
        first, now = last - chance.randint(3, 20), now + timedelta(seconds=90)
        for host in range(hosts):
            name = f"n{host + 10 * number if spoilt == 'hosts' else host:02}"
            if replaced and number and host == 2:
                name = "n99"
            start = 2000 + 300 * number + chance.randrange(100)  # a host counts them up
            for gpu in range(4):
                file = f"nccl.{name}.{start + gpu}"
                rows["files"].append({"file_id": file, "path": f"/logs/job/nccl/{file}.log"})
                rows["nccl_ranks"].append(
                    {
                        "file_id": file,
                        "line": 3,
                        "ts_source": "none",
                        "host": name,
                        "pid": start + gpu,
                        "comm": f"0x5{number}{host}{gpu}0",
                        "comm_id": f"0x{number + 1:016x}",
                        "rank": 4 * host + gpu,
                        "nranks": 4 * hosts,
                        "bus_id": f"{gpu}a000",
                    }
                )
    chance.shuffle(rows["nccl_ranks"])
    runs = runs_of(make_store(rows))
    if spoilt:
        assert len(runs) > launches
        assert all(run.candidates or run.processes for run in runs)
        return
    assert [(run.first_step, run.last_step) for run in runs] == spans
    assert {run.name for run in runs} == {runs[0].name}
    pids = [{int(path.split(".")[-2]) for path in run.paths if "nccl" in path} for run in runs]
    assert [max(a) < min(b) for a, b in pairwise(pids)] == [True] * (launches - 1)


@pytest.mark.parametrize("untold", [0, 35])
@pytest.mark.parametrize("seed", range(6))
def test_one_log_of_steps_is_split_among_launches_that_only_collectives_tell(
    seed: int, untold: int, make_store: MakeStore
) -> None:
    """The Inspector writes a file a process; the log of steps goes on over the restart.

    It may write none of the first steps of a launch.
    """
    chance = random.Random(seed)
    ranks, pause = chance.choice([4, 8]), timedelta(seconds=chance.choice([5, 90, 900]))
    # A trainer may print one step of ten; one that repeats its last step alone goes back, too.
    every, replay = [(1, 20), (1, 1), (5, 12), (10, 30), (1, 40), (5, 30)][seed]
    pause = max(pause, timedelta(seconds=90)) if replay == 1 else pause
    first_of = [1, 102 - replay]
    rows: Rows = {"files": [{"file_id": "train", "path": "/logs/train.log"}]}
    rows |= {"steps": [], "collectives": []}
    now, spans = START, []
    for run, first in enumerate(first_of):
        last = first + chance.randint(45, 120) if run else 101
        spans.append((first, last))
        late = timedelta(seconds=chance.choice([0, 3]))
        for rank in range(ranks):
            file = f"run{run}-{rank}"
            rows["files"].append({"file_id": file, "path": f"/logs/inspector/{file}.log"})
        for step in range(first, last + 1):
            now += timedelta(seconds=2)
            line = len(rows["steps"]) + 1
            told = {"file_id": "train", "line": line, "ts": now, "ts_source": "inline"}
            if step % every == 0:
                rows["steps"].append(told | {"step": step, "step_time_ms": 2000.0})
            rows["collectives"] += [
                {
                    "file_id": f"run{run}-{rank}",
                    "line": step,
                    "ts": now + late,
                    "ts_source": "derived",
                    "comm_id": f"0x7f{run}0a1b2c3d4e",
                    "rank": rank,
                    "nranks": ranks,
                    "host": f"n{rank // 4}",
                    "pid": 1000 * run + rank,
                    "seq": step,
                    "duration_us": 1000.0,
                }
                for rank in range(ranks)
                if step % 2 == 0 and step >= first + untold
            ]
        now += pause
    runs = runs_of(make_store(rows))
    told = [(-(-first // every) * every, last // every * every) for first, last in spans]
    assert [(run.first_step, run.last_step) for run in runs] == told
    assert [run.name for run in runs] == [runs[0].name] * 2


@pytest.mark.parametrize("logs", ["one", "one a host"])
@pytest.mark.parametrize(
    "kind", ["restarted", "restarted, no label", "once", "once, tasks of several processes"]
)
@pytest.mark.parametrize("seed", range(4))
def test_launches_in_one_log_without_communicators_are_told_apart(
    seed: int, kind: str, logs: str, make_store: MakeStore
) -> None:
    """Cut logs of NCCL name no communicator, and two launches were one job of twice the ranks.

    A log has both launches, the Inspector's files are one a process, clocks differ. What the
    launcher writes may be the number of a task of several processes, and a log may have none of it.
    """
    chance = random.Random(seed)
    hosts, gpus = chance.choice([2, 5]), chance.choice([4, 8])
    clocks = [timedelta(seconds=chance.uniform(-40, 40)) for _ in range(hosts)]
    runs = 1 if kind.startswith("once") else 2
    tasks = 2 if "tasks" in kind else gpus
    rows: Rows = {"files": [], "nccl_ranks": [], "collectives": []}
    pids = iter(chance.sample(range(1000, 400_000), runs * hosts * gpus))
    lines = dict.fromkeys(range(hosts), 0)
    for run in range(runs):
        for host in range(hosts):
            log = "log" if logs == "one" else f"log{host}"
            rows["files"].append({"file_id": log, "path": f"/logs/nccl/{log}.log"})
            begin = START + clocks[host] + run * timedelta(seconds=200 + 50)
            for gpu in range(gpus):
                shown = {"host": f"n{host}", "pid": next(pids)}
                of_log = 0 if logs == "one" else host
                lines[of_log] += chance.randint(1, 9)
                label = host * tasks + gpu * tasks // gpus
                rows["nccl_ranks"].append(
                    shown | {"file_id": log, "line": lines[of_log], "ts_source": "none",
                             "launch_rank": None if "no label" in kind else label}
                )  # fmt: skip
                file = f"n{host}-pid{shown['pid']}"
                rows["files"].append({"file_id": file, "path": f"/logs/inspector/{file}.log"})
                rows["collectives"] += [
                    shown | {"file_id": file, "line": seq, "ts": begin + timedelta(seconds=2 * seq),
                             "ts_source": "inline", "comm_id": f"0x{run + 7:016x}",
                             "rank": host * gpus + gpu, "nranks": hosts * gpus, "seq": seq,
                             "duration_us": 1000.0}
                    for seq in range(0, 100, 5)
                ]  # fmt: skip
    store = make_store(rows)
    assert [run.name for run in runs_of(store)] == ["logs"] * runs
    with open_session(store, "SELECT * FROM jobs, job_ranks") as session:
        sizes = session.sql("SELECT count(*), count(DISTINCT rank) FROM job_ranks GROUP BY job")
        assert sizes.fetchall() == [(hosts * gpus, hosts * gpus)] * runs


@pytest.mark.parametrize("recorded", ["every rank", "some hosts", "rank 0"])
@pytest.mark.parametrize("seed", range(3))
def test_ranks_are_counted_once_where_groups_of_one_size_tell_processes_alone(
    seed: int, recorded: str, make_store: MakeStore
) -> None:
    """Tensor groups name processes, step records ranks: the job had 120 ranks on 60 GPUs."""
    chance = random.Random(seed)
    hosts, gpus = chance.choice([3, 5]), chance.choice([4, 8])
    rows: Rows = {"files": [], "steps": [], "collectives": []}
    told = {"every rank": hosts * gpus, "some hosts": 2 * gpus, "rank 0": 1}[recorded]
    for rank in range(hosts * gpus):
        host = f"n{rank // gpus}"
        shown = {"host": host, "ts_source": "inline", "file_id": f"f{rank}"}
        rows["files"] += [
            {"file_id": f"f{rank}", "path": f"/logs/inspector/{host}-{rank}.log"},
            {"file_id": f"r{rank}", "path": f"/logs/steps/rank_{rank}.jsonl"},
        ]
        for step in range(40):
            moment = {"ts": START + timedelta(seconds=step), "line": step + 1}
            if rank < told:
                rows["steps"].append(
                    shown | moment | {"step": step, "rank": rank, "step_time_ms": 1e3,
                                      "file_id": f"r{rank}"}
                )  # fmt: skip
            rows["collectives"].append(
                shown | moment | {"comm_id": f"0x{int(host[1:]) + 7:016x}", "pid": 5000 + rank,
                                  "rank": rank % gpus, "nranks": gpus, "seq": step,
                                  "duration_us": 1e3}
            )  # fmt: skip
    with open_session(make_store(rows), "SELECT * FROM jobs, job_ranks") as session:
        ranks = session.sql("SELECT host, count(*) FROM job_ranks GROUP BY host ORDER BY host")
        assert ranks.fetchall() == [(f"n{host}", gpus) for host in range(hosts)]


@pytest.mark.parametrize("losses", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_logs_of_ranks_without_times_are_of_the_launches_that_print_the_same(
    seed: int, losses: bool, make_store: MakeStore
) -> None:
    """A trainer writes a file a rank, with all attempts and no time; the scheduler's has times."""
    chance = random.Random(seed)
    ranks = chance.choice([2, 8])
    rows: Rows = {"files": [], "steps": [], "collectives": []}
    spans = [(1, 60 + chance.randint(0, 30))]
    spans.append((spans[0][1] - chance.randint(3, 20), 200 + chance.randint(0, 30)))
    now, line = START, 0
    for run, (first, last) in enumerate(spans):
        rows["files"] += [
            {"file_id": f"run{run}-{rank}", "path": f"/logs/job/inspector/cn0-pid{run}{rank}.log"}
            for rank in range(ranks)
        ]
        for step in range(first, last + 1):
            now, line = now + timedelta(seconds=2), line + 1
            loss = {"loss": 3.0 - step / 1000 if losses else None}
            told = {"line": line, "step": step, "step_time_ms": 2000.0} | loss
            timed = {"ts": now, "ts_source": "inline"}
            rows["steps"].append({"file_id": "train"} | told | timed)
            rows["steps"] += [
                {"file_id": f"rank{rank}", "rank": rank, "ts_source": "none"} | told
                for rank in range(ranks)
            ]
            rows["collectives"] += [
                {"file_id": f"run{run}-{rank}", "line": step, "ts": now, "ts_source": "derived",
                 "comm_id": f"0x7f{run}0a1b2c3d4e", "rank": rank, "nranks": ranks, "host": "cn0",
                 "pid": 1000 * run + rank, "seq": step, "duration_us": 1000.0}
                for rank in range(ranks)
            ]  # fmt: skip
        now += timedelta(seconds=90)
    rows["files"].append({"file_id": "train", "path": "/logs/job/nccl/slurm-4815.out"})
    rows["files"] += [
        {"file_id": f"rank{rank}", "path": f"/logs/job/logs-rank{rank}.txt"}
        for rank in range(ranks)
    ]
    runs = runs_of(make_store(rows))
    assert [(run.name, run.first_step, run.last_step) for run in runs] == [
        ("slurm-4815", *span) for span in spans
    ]
    assert [sum("logs-rank" in path for path in run.paths) for run in runs] == [ranks, ranks]


def test_one_job_is_chosen(tmp_path: Path, fabricobs: Run) -> None:
    store = made(tmp_path / "s", together(SLOW.rows(), AGAIN.rows(), WELL.rows()))
    alone = fabricobs("diagnose", "--store", store, "--job", "second")
    assert alone.returncode == 0, alone.stderr
    assert "Questions" in alone.stdout
    assert "Nothing wrong" in alone.stdout
    runs = json.loads(
        fabricobs("diagnose", "--store", store, "--job", "first", "--format", "json").stdout
    )
    assert [job["job"] for job in runs["jobs"]] == ["first", "first#2"]
    both = fabricobs("diagnose", "--store", store, "--job", "first").stdout
    assert "`--job NAME#1` shows the answers of one" in both
    first = fabricobs("diagnose", "--store", store, "--job", "first#1").stdout
    assert "Questions" in first
    # It is slower than the other all along: that one is named, and no more.
    assert first.count("first#2") == 1
    assert "against the run first#2" in " ".join(first.split())
    wrong = fabricobs("diagnose", "--store", store, "--job", "secnd")
    assert (wrong.returncode, wrong.stdout) == (3, "")
    assert "did you mean second" in wrong.stderr
    with pytest.raises(JobError, match="no such job"):
        diagnose(store, job="third")


@pytest.mark.parametrize("others", [[LATER], [AGAIN], [WELL], [AGAIN, LATER]], ids=len)
def test_a_fault_ended_with_its_job_whoever_asks(tmp_path: Path, others: list[Job]) -> None:
    """With --job the fault of a job that is over lasted "until the end of the logs"."""
    store = made(tmp_path / "s", together(*(job.rows() for job in (SLOW, *others))))
    (of_all,), (of_job,) = (diagnose(store, job=job).findings for job in (None, "first"))
    assert (of_job.state, of_job.title) == (of_all.state, of_all.title)
    assert (of_job.state == "over") == (others != [WELL])
    told = diagnose(store, job="first").verdict
    assert headline(of_job) in told.sentence
    assert of_job.title in told.questions[1].evidence


@pytest.mark.parametrize("seed", range(6))
def test_a_job_that_did_its_plan_ended_and_its_fault_with_it(tmp_path: Path, seed: int) -> None:
    """Some trainers count steps from 0; the planned number stands in one log, and may be more."""
    draw = random.Random(seed)
    first, more = draw.randrange(2), draw.choice([0, 0, 7, 500])
    job = replace(SLOW, first_step=first)
    rows = job.rows()
    for row in rows["steps"]:
        if row["rank"] == 0:
            row["total_steps"] = job.steps + more
    (run,) = runs_of(made(tmp_path / "s", rows))
    assert (run.planned_steps, run.finished) == (job.steps + more, more == 0)
    found = diagnose(tmp_path / "s")
    (finding,) = found.findings
    assert (finding.state == "over", finding.to_its_end) == (more == 0, more == 0)
    ended = f"It lasted until its job ended at step {first + job.steps - 1}"
    assert (ended in found.verdict.sentence) == (more == 0)
    assert f" of {job.steps + more}" in listing_text([run])


@pytest.mark.parametrize("seed", range(4))
def test_a_restart_says_what_it_cost(tmp_path: Path, seed: int) -> None:
    """The time between two runs and the steps done again were in no account."""
    draw = random.Random(seed)
    between, back = draw.randrange(30, 600), draw.randrange(40)
    again = replace(
        AGAIN, begin=SLOW.begin + timedelta(seconds=140 + between), first_step=121 - back
    )
    before, after = runs_of(made(tmp_path / "s", together(SLOW.rows(), again.rows())))
    (told,) = restarts([after, before])
    assert before.end is not None and after.begin is not None
    took = (after.begin - before.end).total_seconds() + 0.91 * back
    cost = re.search(r"([\d.,]+) GPU hours passed without a new step", told)
    assert cost and float(cost[1]) == pytest.approx(8 * took / 3600, rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_the_time_between_two_runs_is_that_of_each_hosts_clock(tmp_path: Path, seed: int) -> None:
    """From the end on a clock that is ahead to the begin on one that is behind is another time."""
    draw = random.Random(seed)
    between = draw.randrange(60, 600)
    ahead = {host: draw.uniform(-50, 50) for host in SLOW.hosts}
    parts = []
    for job in (SLOW, replace(AGAIN, begin=SLOW.end + timedelta(seconds=between))):
        rows = job.rows()
        for row in rows["steps"]:
            row["ts"] += timedelta(seconds=ahead[row["host"]])  # type: ignore[operator,index]
        parts.append(rows)
    before, after = runs_of(made(tmp_path / "s", together(*parts)))
    told = seconds_between(before, after)
    # The first step of the next run has ended then, the last of the one before was longer.
    assert told == pytest.approx(between + SLOW.steps - 0.91 * SLOW.steps * 1.3, abs=20)


def test_jobs_are_listed(tmp_path: Path, fabricobs: Run) -> None:
    store = made(tmp_path / "s", together(SLOW.rows(), AGAIN.rows(), WELL.rows()))
    listed = fabricobs("diagnose", "--store", store, "--list-jobs")
    assert listed.returncode == 0
    assert "first#2: run 2 of first, 2 hosts, 8 of 8 ranks, steps 81 to 200" in listed.stdout
    told = json.loads(
        fabricobs("diagnose", "--store", store, "--list-jobs", "--format", "json").stdout
    )
    assert [(job["name"], job["run"], job["nranks"]) for job in told["jobs"]] == [
        ("first", 1, 8),
        ("first", 2, 8),
        ("second", 1, 8),
    ]


@pytest.mark.parametrize("hosts", [["r1c1", "r1c2"], ["gpu-a1", "gpu-a2"], ["node1", "node20"]])
def test_a_job_named_by_its_files_has_no_part_of_their_hosts_in_its_name(
    make_store: MakeStore, hosts: list[str]
) -> None:
    """The files nccl.r1c1.100.log and nccl.r1c2.100.log were of the job "nccl.r"."""
    ranks, files = [], []
    for comm, (name, on) in enumerate([("nccl", hosts), ("other", ["b1", "b2"])]):
        for rank, host in enumerate(on):
            file = f"{name}.{host}.100"
            files.append({"file_id": file, "path": f"/logs/{file}.log"})
            ranks.append(
                {"file_id": file, "line": 3, "ts_source": "none", "host": host, "pid": 100,
                 "comm": f"0x5{rank}0", "comm_id": f"0x{comm}", "rank": rank, "nranks": 2}
            )  # fmt: skip
    runs = runs_of(make_store({"files": files, "nccl_ranks": ranks}))
    assert [run.name for run in runs] == ["nccl", "other"]


@pytest.mark.parametrize("ended", ["in the run", "with the run"])
def test_what_is_over_in_the_last_run_weighs_as_much_as_all_runs_lost(ended: str) -> None:
    """A host that was slow until a restart and for a while after it was critical when over."""
    host = Entity("host", host="n1")
    first = Finding(
        "gpu_throttle", (host,), "critical", 0.9, "It is hot", "", loss_share=0.3, run_share=0.02,
        families=("counters", "timing"), start=START, end=START + timedelta(hours=1),
        state="over", to_its_end=True,
    )  # fmt: skip
    second = replace(
        first, severity="medium", run_share=0.035, start=first.end,
        end=START + timedelta(hours=2), to_its_end=ended == "with the run",
    )  # fmt: skip
    runs: Any = [SimpleNamespace(name="job", label=label) for label in ("job", "job#2")]
    told = _of_runs(list(zip(runs, (first, second), strict=True)))
    assert told.run_share == pytest.approx(0.055)
    assert told.severity == ("medium" if ended == "in the run" else "critical")


def folder_of_job(name: str, chance: random.Random, number: int) -> tuple[Rows, int]:
    """One job's log as a site keeps it, `jobs/NAME/...`: steps alone, or NCCL's lines and steps."""
    host, ranks = f"node{number}", chance.choice([0, 4])
    file = chance.choice(["train.out", "rank0.log", f"slurm-{7_000 + number}.out", "stdout"])
    below = chance.choice(["", "", "logs/", f"{20260301 + number}/"])
    first, steps = chance.randrange(0, 4_000, 10), chance.randint(80, 300)
    length = chance.uniform(0.4, 9.0)
    begin = START + timedelta(seconds=chance.uniform(0, 600))
    row = {"file_id": name, "ts_source": "inline"}
    found: Rows = {
        "files": [{"file_id": name, "path": f"/logs/jobs/{name}/{below}{file}"}],
        "steps": [
            row | {"line": 100 + n, "step": first + n, "ts": begin + timedelta(seconds=n * length)}
            for n in range(steps)
        ],
        "nccl_ranks": [
            row
            | {
                "line": rank, "host": host, "pid": 900 + rank, "comm": f"0x{rank}", "rank": rank,
                "comm_id": f"0x{crc32(name.encode()):x}", "nranks": ranks, "nodes": 1,
                "cuda_device": rank, "init_state": "complete", "version": "2.21.5",
                "ts": begin - timedelta(seconds=30),
            }
            for rank in range(ranks)
        ],
    }  # fmt: skip
    return found, steps


@pytest.mark.parametrize("seed", range(20))
def test_folders_below_jobs_are_jobs_of_their_own(tmp_path: Path, seed: int) -> None:
    """A log of steps alone was joined to the one job with NCCL's lines beside it."""
    chance = random.Random(seed)
    names = chance.sample(["dpo13b", "mpt30b-7f2c", "a_titan", "7701", "7688", "vit", "gpt"], 3)
    parts = [folder_of_job(name, chance, number) for number, name in enumerate(names)]
    store = made(tmp_path / "s", together(*(rows for rows, _ in parts)))
    runs = runs_of(store)
    assert sorted(run.name for run in runs) == sorted(
        run.name if name.isdecimal() else name
        for name in names
        for run in runs
        if f"/jobs/{name}/" in run.paths[0]
    )
    assert len(runs) == len(names), listing_text(runs)


def test_folders_of_hosts_below_jobs_are_no_jobs(tmp_path: Path) -> None:
    rows = replace(SLOW, slow=None).rows()
    for row in rows["files"]:
        host = next((h for h in SLOW.hosts if h in str(row["path"])), SLOW.hosts[0])
        row["path"] = f"/logs/jobs/{host}/{row['file_id']}.log"
    assert len(runs_of(made(tmp_path / "s", rows))) == 1


def test_steps_of_other_hours_are_of_another_job(tmp_path: Path) -> None:
    """A resumed run does steps 7010 to 10700; another job did these an hour before."""

    def log(name: str, first: int, last: int, begin: datetime, seconds: float) -> Rows:
        steps = [
            {
                "file_id": name, "line": n, "step": step, "ts_source": "inline",
                "ts": begin + timedelta(seconds=n * 10 * seconds),
            }
            for n, step in enumerate(range(first, last, 10))
        ]  # fmt: skip
        return {"files": [{"file_id": name, "path": f"/logs/{name}.log"}], "steps": steps}

    nccl, _ = folder_of_job("resumed", random.Random(1), 1)
    nccl["files"] = [{"file_id": "resumed", "path": "/logs/resumed/train.out"}]
    nccl["steps"] = log("resumed", 7_010, 10_700, START + timedelta(hours=5), 3.0)["steps"]
    nccl["nccl_ranks"] = [
        row | {"ts": START + timedelta(hours=5)} for row in SLOW.rows()["nccl_ranks"][:4]
    ]
    for row in nccl["nccl_ranks"]:
        row["file_id"] = "resumed"
    both = together(nccl, log("pipeline", 10, 15_300, START, 1.86))
    assert len(runs_of(made(tmp_path / "s", both))) == 2
