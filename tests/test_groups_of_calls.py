"""Who is late where ranks call in groups: within hosts, between hosts, in stages of a pipeline.

All that tells are the collectives: what the Inspector leaves of tensor and data parallel groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fabricobs.diagnosis.findings import Diagnosis, Finding
from fabricobs.diagnosis.run import diagnose
from fabricobs.store.arrow import table_schema
from fabricobs.store.parts import Store

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 2, 9)
WITHIN_MS, BETWEEN_MS = 20.0, 300.0


@dataclass(frozen=True)
class Job:
    """`stages` of `hosts` each; the ranks of a host share tensors, its n-th ones sum gradients.

    Hosts of one number in each stage are a pipeline. `slow` are ranks that compute `slower` from
    the middle of the job on.
    """

    seed: int
    hosts: int
    stages: int = 1
    gpus: int = 4
    steps: int = 120
    slow: tuple[int, ...] = ()
    slower: float = 1.3

    @property
    def ranks(self) -> int:
        return self.hosts * self.stages * self.gpus


def drawn(seed: int, stages: int) -> Job:
    chance = np.random.default_rng(seed)
    return Job(seed, int(chance.integers(4, 9)), stages, int(chance.choice([4, 8])))


def calls(job: Job) -> Iterator[dict[str, object]]:
    """Run the job: a row for each rank of each call."""
    chance = np.random.default_rng(job.seed)
    usual = 1500 * (1 + 0.003 * chance.standard_normal(job.ranks))
    slow = np.isin(np.arange(job.ranks), job.slow)
    by_host = np.arange(job.ranks).reshape(job.stages, job.hosts, job.gpus)
    now = 0.0
    for step in range(job.steps):
        work = usual * (1 + 0.01 * chance.standard_normal(job.ranks))
        if step >= job.steps // 2:
            work = np.where(slow, work * job.slower, work)
        ready = now + work
        for group in by_host.reshape(-1, job.gpus):
            end = ready[group].max() + WITHIN_MS
            yield from _rows(job, "t", group, step, end, end - ready[group])
            ready[group] = end
        # All stages of a pipeline end with its slowest.
        ready = ready.reshape(by_host.shape).max(axis=(0, 2), keepdims=True)
        ready = np.broadcast_to(ready, by_host.shape).ravel()
        ready = ready + chance.uniform(0, 2, job.ranks)
        last = 0.0
        for group in by_host.transpose(0, 2, 1).reshape(-1, job.hosts):
            end = ready[group].max() + BETWEEN_MS
            yield from _rows(job, "d", group, step, end, end - ready[group])
            last = max(last, end)
        now = last + 30


def _rows(
    job: Job, kind: str, group: np.ndarray, step: int, end: float, ms: np.ndarray
) -> Iterator[dict[str, object]]:
    for place, (rank, spent) in enumerate(zip(group.tolist(), ms.tolist(), strict=True)):
        yield {
            "file_id": "c", "comm_id": f"0x{kind}{group[0]:04d}", "rank": place,
            "global_rank": rank, "host": f"node{rank // job.gpus:02d}", "pid": 100 + rank,
            "nranks": len(group), "nodes": 1 if kind == "t" else len(group), "op": "AllReduce",
            "seq": step, "bytes": 2 << (20 if kind == "t" else 30),
            "ts": START + timedelta(milliseconds=end), "duration_us": 1000 * spent,
        }  # fmt: skip


def judged(job: Job, folder: Path) -> Diagnosis:
    schema = table_schema("collectives")
    store = Store(folder / "store")
    store.create()
    store.append("given", {"collectives": pa.Table.from_pylist([*calls(job)], schema=schema)})
    return diagnose(store.path)


def late(found: Diagnosis) -> Finding:
    (finding,) = (f for f in found.findings if f.kind == "straggler")
    return finding


def loss_of(job: Job) -> float:
    """What the slow ranks cost from the middle on; the noise of the others hides a little of it."""
    step = 1500 + WITHIN_MS + BETWEEN_MS + 30
    return 1500 * (job.slower - 1) / (step + 1500 * (job.slower - 1))


@pytest.mark.parametrize("seed", range(3))
class TestOneStage:
    def test_a_host_is_late_between_hosts_alone(self, seed: int, tmp_path: Path) -> None:
        """Its ranks wait for nobody within it: groups within hosts alone called them alike."""
        job = drawn(seed, 1)
        host = int(np.random.default_rng(seed).integers(job.hosts))
        job = replace(job, slow=tuple(range(host * job.gpus, (host + 1) * job.gpus)))
        finding = late(judged(job, tmp_path))
        assert [(e.type, e.host) for e in finding.entities] == [("host", f"node{host:02d}")]
        assert finding.loss_share == pytest.approx(loss_of(job), abs=0.03)
        assert finding.start_step == pytest.approx(job.steps // 2, abs=8)

    def test_a_rank_is_late_and_its_mates_are_not(self, seed: int, tmp_path: Path) -> None:
        job = drawn(seed, 1)
        rank = int(np.random.default_rng(seed).integers(job.ranks))
        job = replace(job, slow=(rank,))
        finding = late(judged(job, tmp_path))
        assert [e.rank for e in finding.entities] == [rank]
        assert finding.loss_share == pytest.approx(loss_of(job), abs=0.03)

    def test_nobody_is_late(self, seed: int, tmp_path: Path) -> None:
        job = drawn(seed, 1)
        found = judged(job, tmp_path)
        assert found.findings == ()
        assert f"{job.ranks} ranks arrive at their collectives alike" in (
            found.verdict.questions[1].evidence
        )


@pytest.mark.parametrize("seed", range(2))
def test_stages_that_wait_for_a_late_one_are_told_with_it(seed: int, tmp_path: Path) -> None:
    job = drawn(seed, 2)
    host = int(np.random.default_rng(seed).integers(job.hosts))
    job = replace(job, slow=tuple(range(host * job.gpus, (host + 1) * job.gpus)))
    finding = late(judged(job, tmp_path))
    names = {f"node{host:02d}", f"node{job.hosts + host:02d}"}
    assert {e.host for e in finding.entities} == names
    assert "The cause was in one of the groups" in finding.explanation
    assert finding.loss_share == pytest.approx(loss_of(job), abs=0.03)
