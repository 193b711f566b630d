"""Hangs by all that is left of them: watchdogs, recorders, RAS and stacks, in any part of them.

Whatever is missing, cut or taken too early: the rank that hangs is named, or nobody is, and what
the sources do not tell is called unknown.
"""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from conftest import Rows
from fabricobs.diagnosis.findings import Diagnosis, Finding
from fabricobs.diagnosis.run import diagnose
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.simulator.fabric import observe
from fabricobs.simulator.facts import Hang
from fabricobs.simulator.logs import KINDS
from fabricobs.simulator.random_worlds import hang_logs
from fabricobs.simulator.random_worlds.nccl import write_nccl, write_watchdog
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.spec import draw_spec
from fabricobs.simulator.random_worlds.trainer import write_steps
from fabricobs.simulator.random_worlds.world import come_true as random_world
from fabricobs.simulator.shapes import ClusterShape, FaultShape, JobShape, ScenarioShape
from fabricobs.simulator.world import World, come_true
from fabricobs.simulator.writers.ras import (
    RasCommunicator,
    RasProcess,
    ras_json,
    ras_text,
)
from fabricobs.simulator.writers.stacks import Doing, faulthandler, py_spy, py_spy_json
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

Make = Callable[[Rows], Path]
START = datetime(2026, 3, 2, 9)
JOBS = {
    "data_parallel": (24, JobShape(steps=24)),
    "three_dimensions": (32, JobShape(steps=24, tensor=4, pipeline=2)),
}
SAYS: dict[Doing, str] = {"data": "loading data", "checkpoint": "in checkpoint I/O"}
SMALL = {
    "hosts": 3, "gpus_per_host": 8, "duration_minutes": 10.0, "step_seconds": 4.0, "only": "",
    "steps_from": "rank0", "restarts": 0, "spare_hosts": 0,
}  # fmt: skip


def hangs(found: Diagnosis) -> list[Finding]:
    assert not [p for q in found.verdict.questions for p in [q.evidence] if "unexpected" in p]
    return [finding for finding in found.findings if finding.kind == "hang"]


def read(folder: Path, zone: str = "UTC") -> Diagnosis:
    ingest([folder / "logs"], Store(folder / "store"), Options(zone=zone))
    return diagnose(folder / "store")


@cache
def hung(jobs: str, seed: int) -> World:
    gpus, job = JOBS[jobs]
    shape = ScenarioShape(
        title="a test",
        teaches="nothing",
        cluster=ClusterShape(gpus=gpus),
        jobs=(job,),
        faults=(FaultShape(kind="hang"),),
    )
    return come_true("test", shape, seed)


def write(folder: Path, world: World, kinds: set[str]) -> int:
    """Write some kinds of log of a world that hangs; return the rank that does."""
    fabric = observe(world)
    for kind in KINDS:
        if kind.name in kinds:
            kind.write(folder / kind.name, world, fabric)
    (hang,) = [fact for fact in world.facts if isinstance(fact, Hang)]
    return hang.rank


@pytest.mark.parametrize("jobs", list(JOBS))
@pytest.mark.parametrize("seed", range(6))
def test_any_part_of_the_evidence_names_the_rank_or_nobody(
    jobs: str, seed: int, tmp_path: Path
) -> None:
    chance = np.random.default_rng(seed + 100)
    folder = tmp_path / "logs"
    rank = write(folder, hung(jobs, seed), {"nccl", "train", "watchdog"})
    parts = {
        "watchdog": list((folder / "watchdog").glob("*.log")),
        "recorder": list((folder / "watchdog" / "flight_recorder").iterdir()),
        "ras": list((folder / "watchdog" / "ras").iterdir()),
        "stacks": list((folder / "watchdog" / "stacks").iterdir()),
    }
    kept = {name for name in parts if chance.random() < 0.6}
    for name, paths in parts.items():
        for path in paths:
            if name not in kept:
                path.unlink()
    # The dump of the rank itself is missing, or any dump is cut: what is killed does not end.
    own = folder / "watchdog" / "flight_recorder" / f"nccl_trace_rank_{rank}.json"
    lacks = "recorder" in kept and bool(chance.random() < 0.4)
    if lacks:
        own.unlink()
    for name in ("recorder", "stacks"):
        for path in parts[name]:
            if path.exists() and path != own and chance.random() < 0.1:
                text = path.read_text()
                path.write_text(text[: int(len(text) * chance.uniform(0.2, 0.9))])
    stacks = "".join(path.read_text() for path in parts["stacks"] if path.exists())
    found = hangs(read(tmp_path))
    # Six minutes without a launch may be those of a rank that writes a checkpoint.
    assert bool(found) == ("watchdog" in kept or ("ras" in kept and "save" not in stacks))
    for finding in found:
        named = {entity.rank for entity in finding.entities if entity.type == "rank"}
        assert named <= {rank}
        assert named == {rank}
        assert "do not agree" not in finding.explanation
        if "loading data" in finding.title:
            assert "__next__ (torch/utils/data/dataloader.py" in finding.explanation
        assert ("What it does is unknown" in finding.explanation) <= ("stacks" not in kept)


@pytest.mark.parametrize("seed", range(2))
def test_of_two_jobs_the_one_that_hangs_is_named(seed: int, tmp_path: Path) -> None:
    """The other runs on hosts of its own, and its ranks were looked at, too."""
    rank = write(
        tmp_path / "logs" / "a", hung("data_parallel", seed), {"nccl", "train", "watchdog"}
    )
    spec = draw_spec(seed + 20, **(SMALL | {"zone": "UTC", "nccl_level": "info"}))
    site = Site(random_world(spec, ()), tmp_path / "logs" / "b")
    write_steps(site)
    write_nccl(site)
    launch = site.world.courses[0].launch
    for each in range(launch.ranks):
        text = py_spy(int(launch.pids[each]), "collective" if each % 3 else "data", classes=True)
        name = site.world.topology.devices[int(launch.host[each])].name
        site.write_job(f"stacks/{name}/pyspy_{launch.pids[each]}.txt", text)
    (finding,) = hangs(read(tmp_path))
    assert {entity.rank for entity in finding.entities} == {rank}


@pytest.mark.parametrize("seed", range(10))
def test_what_a_random_site_collects_names_the_rank_or_nobody(seed: int, tmp_path: Path) -> None:
    spec = draw_spec(seed, **SMALL)
    site = Site(random_world(spec, ("hang",)), tmp_path / "logs")
    evidence = hang_logs.hang_evidence(site)
    write_steps(site)
    write_nccl(site)
    if evidence.watchdog:
        write_watchdog(site)
    hang_logs.write_hang_logs(site)
    launch, hang = site.world.courses[-1].launch, site.world.hang
    assert hang is not None
    stopped = np.flatnonzero(np.isin(launch.gpu, hang.parts))
    (finding,) = hangs(read(tmp_path, spec.zone))
    for entity in finding.entities:
        if entity.rank is not None:
            assert entity.rank in stopped
        elif entity.pid is not None:
            assert entity.pid in launch.pids[stopped]
        else:
            assert entity.type in {"host", "job"}
    if evidence.stops in SAYS and "Python stack rank" in finding.explanation:
        assert SAYS[evidence.stops] in finding.explanation


@pytest.mark.parametrize("seed", range(8))
def test_a_sound_job_that_was_looked_at_does_not_hang(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RAS then counts unlike launches, and most stacks stand in a collective."""
    monkeypatch.setattr(hang_logs, "_SOUND_SHARE", 1.0)
    spec = draw_spec(seed + 50, **SMALL)
    site = Site(random_world(spec, ()), tmp_path / "logs")
    write_steps(site)
    write_nccl(site)
    hang_logs.write_hang_logs(site)
    assert hangs(read(tmp_path, spec.zone)) == []


def report(
    behind: dict[int, int], ranks: int = 16, op: str = "AllReduce", comm: int = 0x51B0D2F1
) -> RasCommunicator:
    """A communicator in which some ranks are behind by some calls of 400."""
    launched = np.full(ranks, 400)
    for rank, calls in behind.items():
        launched[rank] -= calls
    members = [RasProcess(f"10.1.0.{r // 8 + 1}", 4000 + r, r % 8) for r in range(ranks)]
    return RasCommunicator(comm, members, {op: launched})


def steps(number: int = 40, seconds: float = 5.0) -> str:
    """Steps as a trainer prints them, with times."""
    lines = (
        {
            "step": step,
            "step_time_ms": seconds * 1e3,
            "timestamp": f"{START + timedelta(seconds=seconds * step):%Y-%m-%dT%H:%M:%SZ}",
        }
        for step in range(1, number + 1)
    )
    return "".join(json.dumps(line) + "\n" for line in lines)


class TestRasAlone:
    """One report of a sound job differs as well; what stays the same does not go on."""

    def asked(self, folder: Path, reports: list[tuple[float, RasCommunicator]], form: str) -> None:
        (folder / "logs").mkdir()
        (folder / "logs" / "train.jsonl").write_text(steps())
        for after, counts in reports:
            at = START + timedelta(seconds=200 + after)
            name = folder / "logs" / f"ras_{at:%Y%m%d_%H%M%S}"
            if form == "json":
                text = ras_json("2.29.2", f"{at:%Y-%m-%d %H:%M:%S}", [counts])
                name.with_suffix(".json").write_text(text)
            else:
                name.with_suffix(".txt").write_text(ras_text("2.28.7", [counts], dead=False))

    @pytest.mark.parametrize("form", ["json", "text"])
    @pytest.mark.parametrize("seed", range(3))
    def test_counts_that_stay_name_the_rank(self, form: str, seed: int, tmp_path: Path) -> None:
        chance = np.random.default_rng(seed)
        rank, apart = int(chance.integers(16)), float(chance.uniform(100, 900))
        counts = report({rank: int(chance.integers(1, 9))})
        self.asked(tmp_path, [(30, counts), (30 + apart, counts)], form)
        (finding,) = hangs(read(tmp_path))
        (entity,) = finding.entities
        assert (entity.rank, entity.pid) in {(rank, None), (None, 4000 + rank)}
        assert "the call never came" in finding.explanation

    @pytest.mark.parametrize("form", ["json", "text"])
    def test_one_report_or_counts_that_go_on_are_no_hang(self, form: str, tmp_path: Path) -> None:
        first, second = report({3: 2}), report({3: 1})
        for number, reports in enumerate(
            ([(30.0, first)], [(-60.0, first), (300.0, second)], [(30.0, first), (45.0, first)])
        ):
            folder = tmp_path / str(number)
            folder.mkdir()
            self.asked(folder, reports, form)
            assert hangs(read(folder)) == []

    def test_who_waits_elsewhere_is_not_the_one(self, tmp_path: Path) -> None:
        """Rank 2 waits for rank 3 in their tensor group: both are behind in the larger one."""
        world, tensor = report({2: 1, 3: 1}), report({1: 1}, ranks=2, comm=0x77E0)
        tensor = RasCommunicator(0x77E0, world.members[2:4], tensor.launched)
        (tmp_path / "logs").mkdir()
        for minute in (10, 30):
            text = ras_json("2.29.2", f"2026-03-02 09:{minute}:00", [world, tensor])
            (tmp_path / "logs" / f"ras{minute}.json").write_text(text)
        (finding,) = hangs(read(tmp_path))
        assert [entity.rank for entity in finding.entities] == [3]

    def test_a_rank_in_another_operation_is_named_with_it(self, tmp_path: Path) -> None:
        launched = {"AllReduce": np.full(8, 100), "AllGather": np.full(8, 50)}
        launched["AllReduce"][5] -= 1
        launched["AllGather"][5] += 1
        counts = RasCommunicator(0x9A, report({}, ranks=8).members, launched)
        (tmp_path / "logs").mkdir()
        for minute in (10, 30):
            text = ras_json("2.29.2", f"2026-03-02 09:{minute}:00", [counts])
            (tmp_path / "logs" / f"ras{minute}.json").write_text(text)
        (finding,) = hangs(read(tmp_path))
        assert [entity.rank for entity in finding.entities] == [5]
        assert "in another collective" in finding.title


def timed_out(silent: set[int], ranks: int = 16) -> list[dict[str, object]]:
    return [
        {
            "file_id": "w", "kind": "watchdog_timeout", "rank": rank, "launch_rank": rank,
            "op": "ALLREDUCE", "seq": 361, "duration_ms": 600_000.0,
        }
        for rank in range(ranks)
        if rank not in silent
    ]  # fmt: skip


def progress(behind: int, ranks: int = 16, **changes: int) -> list[dict[str, object]]:
    return [
        {
            "file_id": f"r{rank}", "kind": "group_progress", "process_group": "0 dp", "rank": rank,
            "last_enqueued": 361, "last_completed": 360, "last_started": 361,
        } | (changes if rank == behind else {})
        for rank in range(ranks)
    ]  # fmt: skip


def counted(behind: int, ranks: int = 16) -> Rows:
    """What RAS counts in a report without a time, with NCCL's own list of the ranks."""
    events = [
        {
            "file_id": "c", "kind": "ras_count", "comm_id": "0xabcdef01", "op": "AllReduce",
            "rank": rank, "host": f"node{rank // 8}", "pid": 100 + rank,
            "last_enqueued": 360 + (rank != behind),
        }
        for rank in range(ranks)
    ]  # fmt: skip
    members = [
        {
            "file_id": "n", "line": rank + 1, "host": f"node{rank // 8}", "pid": 100 + rank,
            "rank": rank, "nranks": ranks, "comm": f"0x{rank}", "comm_id": "0xabcdef01",
        }
        for rank in range(ranks)
    ]  # fmt: skip
    return {"nccl_events": events, "nccl_ranks": members}


def stack(rank: int, doing: str) -> list[dict[str, object]]:
    frames = {
        "collective": [("all_reduce", "torch/distributed/distributed_c10d.py", 2806)],
        "data": [("__next__", "torch/utils/data/dataloader.py", 633)],
        "checkpoint": [("save_checkpoint", "megatron/training/checkpointing.py", 412)],
        "own": [("route", "model.py", 17)],
    }[doing]
    return [
        {
            "file_id": f"s{rank}", "line": number, "rank": rank, "thread": "1",
            "thread_name": "MainThread", "frame": number, "function": function, "place": place,
            "code_line": line,
        }
        for number, (function, place, line) in enumerate([*frames, ("train", "train.py", 88)])
    ]  # fmt: skip


class TestSourcesTogether:
    def test_they_agree(self, make_store: Make) -> None:
        rows = counted(11)
        rows["nccl_events"] += timed_out({11}) + progress(11, last_enqueued=360, last_started=360)
        rows["stack_frames"] = [
            frame
            for rank in range(16)
            for frame in stack(rank, "data" if rank == 11 else "collective")
        ]
        (finding,) = hangs(diagnose(make_store(rows)))
        assert [entity.rank for entity in finding.entities] == [11]
        assert finding.title.startswith("rank 11 on node1 is missing, loading data")
        assert "NCCL's RAS and the Python stacks agree." in finding.explanation
        assert "__next__ (torch/utils/data/dataloader.py:633)" in finding.explanation
        assert "called in train (train.py:88)" in finding.explanation
        assert "15 ranks in a collective" in finding.explanation

    def test_they_disagree(self, make_store: Make) -> None:
        rows = counted(5)
        rows["nccl_events"] += timed_out({11}) + progress(11, last_enqueued=360, last_started=360)
        (finding,) = hangs(diagnose(make_store(rows)))
        assert [entity.rank for entity in finding.entities] == [11]
        assert "NCCL's RAS names rank 5 instead: the sources do not agree." in finding.explanation
        assert finding.confidence < 0.9

    @pytest.mark.parametrize(("own", "disagree"), [("data", False), ("collective", True)])
    def test_a_stack_contradicts_only_if_the_named_rank_waits_too(
        self, make_store: Make, own: str, disagree: bool
    ) -> None:
        """The recorders name rank 11; the program of rank 3 does not wait either."""
        events = timed_out({3, 11}) + progress(11, last_enqueued=360, last_started=360)
        for event in events:
            if event["rank"] == 3 and event["kind"] == "group_progress":
                event["last_completed"] = 361
        doing = {11: own, 3: "own"}
        frames = [f for rank in range(16) for f in stack(rank, doing.get(rank, "collective"))]
        (finding,) = hangs(diagnose(make_store({"nccl_events": events, "stack_frames": frames})))
        assert [entity.rank for entity in finding.entities] == [11]
        assert ("do not agree" in finding.explanation) == disagree

    @pytest.mark.parametrize("told", [True, False])
    def test_a_watchdog_of_all_ranks_leaves_it_to_the_others(
        self, make_store: Make, told: bool
    ) -> None:
        """All launched, or each waits in another group: the watchdogs alone name nobody."""
        rows = counted(7)
        rows["nccl_events"] = timed_out(set()) + (rows["nccl_events"] if told else [])
        (finding,) = hangs(diagnose(make_store(rows)))
        assert finding.entities[0].rank == (7 if told else None)
        assert finding.entities[0].type == ("rank" if told else "job")

    def test_a_gpu_that_does_not_begin_what_was_launched_is_stuck(self, make_store: Make) -> None:
        rows = {"nccl_events": timed_out(set()) + progress(9, last_started=360)}
        (finding,) = hangs(diagnose(make_store(rows)))
        assert [entity.rank for entity in finding.entities] == [9]
        assert "is stuck" in finding.title
        assert "its GPU has not begun it" in finding.explanation

    @pytest.mark.parametrize("odd", ["op", "bytes"])
    def test_another_call_under_the_same_number_is_told(self, make_store: Make, odd: str) -> None:
        rows = {"nccl_events": timed_out(set()) + progress(-1)}
        other = {"op": "AllGather"} if odd == "op" else {"bytes": 64}
        rows["collectives"] = [
            {
                "file_id": f"r{rank}", "comm_id": "0[0-15]", "comm_name": "dp", "rank": rank,
                "global_rank": rank, "nranks": 16, "op": "AllReduce", "seq": 361, "bytes": 4096,
                "state": "started", "ts": START,
            } | (other if rank == 2 else {})
            for rank in range(16)
        ]  # fmt: skip
        (finding,) = hangs(diagnose(make_store(rows)))
        assert [entity.rank for entity in finding.entities] == [2]
        assert "in another collective" in finding.title
        assert ("AllGather instead of AllReduce" in finding.explanation) == (odd == "op")

    def test_counts_from_before_the_last_step_are_not_used(self, make_store: Make) -> None:
        rows = counted(5)
        for event in rows["nccl_events"]:
            event["ts"] = START
        rows["nccl_events"] += timed_out({11})
        rows["steps"] = [
            {
                "file_id": "t",
                "step": step,
                "step_time_ms": 1e4,
                "ts": START + timedelta(seconds=10 * step),
            }
            for step in range(1, 60)
        ]
        (finding,) = hangs(diagnose(make_store(rows)))
        assert [entity.rank for entity in finding.entities] == [11]
        assert "RAS" not in finding.explanation


@pytest.mark.parametrize("doing", ["collective", "gpu", "data", "checkpoint", "compute"])
def test_each_form_of_a_stack_tells_the_same(doing: Doing, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "rank0.txt").write_text(py_spy(71, doing, classes=True))
    (logs / "rank1.txt").write_text(py_spy(72, doing, classes=False))
    (logs / "rank2.json").write_text(py_spy_json(73, doing))
    (logs / "rank3.log").write_text(faulthandler(doing, seconds=600))
    ingest([logs], Store(tmp_path / "store"), Options())
    with open_session(tmp_path / "store", "rank_stacks") as session:
        found = session.sql(
            "SELECT rank, doing, waits, place, code_line, own_line FROM rank_stacks ORDER BY rank"
        ).fetchall()
    assert [row[0] for row in found] == [0, 1, 2, 3]
    assert len({row[1:] for row in found}) == 1
    told, waits = found[0][1:3]
    expected = {"collective": "in a collective", "gpu": "waiting for its GPU"} | SAYS
    assert (told, waits) == (expected.get(doing), doing in {"collective", "gpu"})
