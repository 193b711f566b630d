"""GPUs that are slow at once: one finding a cause, priced as what all of them cost together."""

from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from conftest import Rows
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.diagnosis.methods.rule import find_by_rule
from fabricobs.diagnosis.methods.slow_gpus import gpus_of
from fabricobs.diagnosis.model import load_models
from fabricobs.diagnosis.naming import listed, place_of
from fabricobs.diagnosis.run import REST, diagnose, trends_of

START = datetime(2026, 3, 2, 9)
SAMPLE = timedelta(seconds=5)
_STEPS, _WARM_UP = 80, 5
_HEAT, _POWER_CAP = 0x40, 0x4
Make = Callable[[Rows], Path]
Gpu = tuple[int, int]


class Job:
    """Hosts of GPUs that compute alike, some of which are slower from a step on."""

    def __init__(self, seed: int, hosts: int | None = None) -> None:
        self.draw = np.random.default_rng([seed, 1611])
        self.each = int(self.draw.choice([4, 8]))
        self.hosts = hosts or int(self.draw.integers(3, 6))
        stem = str(self.draw.choice(["node", "r4-gpu-", "dgx-a"]))
        self.names = [f"{stem}{host + 1:02d}" for host in range(self.hosts)]
        self.compute_ms = self.draw.normal(700, 2, (_STEPS, self.hosts * self.each))
        self.clock = self.draw.normal(1755, 4, self.hosts * self.each)
        self.held: dict[Gpu, tuple[float, int, int]] = {}
        self.errors: list[dict[str, object]] = []
        self.reasons = int(self.draw.choice([0, _POWER_CAP]))

    def gpus_of(self, host: int, many: int) -> list[Gpu]:
        """Draw GPUs of a host."""
        chosen = self.draw.permutation(self.each)[:many]
        return [(host, int(gpu)) for gpu in sorted(chosen)]

    def slow(self, gpus: list[Gpu], begin: int, end: int = _STEPS, *, told: bool = True) -> None:
        """Let GPUs compute longer from one step to another; their clocks tell of it."""
        for host, gpu in gpus:
            factor = float(self.draw.uniform(1.15, 1.4))
            self.compute_ms[begin:end, host * self.each + gpu] *= factor
            if told:
                self.held[host, gpu] = factor, begin, end

    def fail(self, gpus: list[Gpu], at: int) -> None:
        """Let the driver report that GPUs fell off the bus."""
        self.errors += [
            {"file_id": "k", "host": self.names[host], "kind": "xid", "code": 79,
             "part": str(gpu), "ts": self.moment(at)}
            for host, gpu in gpus
        ]  # fmt: skip

    def moment(self, step: int) -> datetime:
        """Return when a step begins."""
        before = self.compute_ms[:step].max(axis=1).sum() + 210 * step
        return START + timedelta(milliseconds=float(before))

    def lost_share(self, gpus: list[Gpu], begin: int, end: int) -> float:
        """Return what the steps would win with these GPUs as fast as the median."""
        own = self.compute_ms[max(begin, _WARM_UP) : end]
        without = own.copy()
        columns = [host * self.each + gpu for host, gpu in gpus]
        without[:, columns] = np.minimum(own[:, columns], np.median(own, axis=1)[:, None])
        spared = own.max(axis=1) - without.max(axis=1)
        return float(spared.sum() / (own.max(axis=1) + 210).sum())

    def rows(self) -> Rows:
        """Return what logs tell: steps by rank, NCCL's ranks, samples of GPUs, kernel messages."""
        ends = np.cumsum(self.compute_ms.max(axis=1) + 210)
        ranks = range(self.hosts * self.each)
        where = [(self.names[rank // self.each], rank % self.each) for rank in ranks]
        steps = [
            {"file_id": "f", "line": step * len(ranks) + rank + 1, "step": step + 1, "rank": rank,
             "host": where[rank][0], "ts": START + timedelta(milliseconds=float(ends[step])),
             "step_time_ms": float(self.compute_ms[step].max() + 210),
             "compute_ms": float(self.compute_ms[step, rank]),
             "comm_ms": float(self.compute_ms[step].max() - self.compute_ms[step, rank] + 200)}
            for step in range(_STEPS)
            for rank in ranks
        ]  # fmt: skip
        nccl = [
            {"file_id": "n", "line": rank + 1, "host": host, "pid": 100 + rank, "rank": rank,
             "nranks": len(ranks), "comm": f"0x{rank}", "comm_id": "0xabc", "nvml_device": gpu,
             "bus_id": f"{0x10 + gpu:x}000"}
            for rank, (host, gpu) in enumerate(where)
        ]  # fmt: skip
        samples = [
            self._sample(rank, host, gpu, START + SAMPLE * at)
            for rank, (host, gpu) in enumerate(where)
            for at in range(int(ends[-1] / 1e3 / SAMPLE.total_seconds()) + 1)
        ]
        return {"steps": steps, "nccl_ranks": nccl, "gpu_samples": samples, "events": self.errors}

    def _sample(self, rank: int, host: str, gpu: int, ts: datetime) -> dict[str, object]:
        clock, reasons = float(self.clock[rank]), self.reasons
        factor, begin, end = self.held.get(divmod(rank, self.each), (1.0, 0, 0))
        if self.moment(begin) <= ts < self.moment(end):
            clock, reasons = clock / factor, reasons | _HEAT
        return {"file_id": "g", "host": host, "gpu": gpu, "ts": ts, "sm_clock_mhz": round(clock),
                "utilization_percent": 99.0, "throttle_reasons": reasons}  # fmt: skip


def found(make_store: Make, job: Job, kind: str = "gpu_throttle") -> tuple[Finding, ...]:
    """Return what the rule of a kind finds in a job."""
    models = load_models()
    with closing(Evidence(make_store(job.rows()))) as evidence:
        return find_by_rule(evidence, models[kind], trends_of(evidence, models[REST])).findings


def labels(finding: Finding) -> set[str]:
    return {entity.label for entity in finding.entities}


def gpu_labels(job: Job, gpus: list[Gpu]) -> set[str]:
    return {f"GPU {gpu} of {job.names[host]}" for host, gpu in gpus}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("many", ["one", "several", "all"])
def test_throttled_gpus_of_a_host_are_one_finding_with_what_all_cost(
    make_store: Make, many: str, seed: int
) -> None:
    """Each of them alone would win nothing back: the next slow one would be last."""
    job = Job(seed)
    host = int(job.draw.integers(job.hosts))
    count = {"one": 1, "several": 2, "all": job.each}[many]
    gpus, begin = job.gpus_of(host, count), int(job.draw.integers(20, 40))
    job.slow(gpus, begin)
    (finding,) = found(make_store, job)
    if many == "all":
        assert labels(finding) == {job.names[host]}
        assert gpu_labels(job, gpus) <= {entity.label for entity in finding.related}
    else:
        assert labels(finding) == gpu_labels(job, gpus)
    assert finding.loss_share == pytest.approx(job.lost_share(gpus, begin, _STEPS), abs=0.03)
    ranks = {entity.rank for entity in finding.related if entity.type == "rank"}
    assert ranks == {host * job.each + gpu for _, gpu in gpus}
    subject = finding.title.split(" at ")[0]
    assert subject.endswith(f"of {job.names[host]} run{'s' if many == 'one' else ''}")
    assert subject.startswith("GPU " if many == "one" else "GPUs ")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sampled", [True, False])
def test_a_slow_host_whose_clocks_are_its_peers_is_not_sent_to_look_for_throttling(
    make_store: Make, seed: int, sampled: bool
) -> None:
    job = Job(seed)
    host = int(job.draw.integers(job.hosts))
    job.slow([(host, gpu) for gpu in range(job.each)], 30, told=False)
    rows = job.rows()
    if not sampled:
        del rows["gpu_samples"]
    (finding,) = (f for f in diagnose(make_store(rows)).findings if f.kind == "straggler")
    assert labels(finding) == {job.names[host]}
    assert ("no lower clock made it slow" in finding.explanation) == sampled
    asks = [step for step in finding.next_steps if "CLOCK" in step or "DCGM" in step]
    assert bool(asks) != sampled


@pytest.mark.parametrize("seed", range(2))
def test_half_of_all_gpus_are_not_each_others_peers(make_store: Make, seed: int) -> None:
    """With two hosts the median of all lies between those that throttle and the others."""
    job = Job(seed, hosts=2)
    host = int(job.draw.integers(2))
    job.slow([(host, gpu) for gpu in range(job.each)], 30)
    (finding,) = found(make_store, job)
    assert labels(finding) == {job.names[host]}


@pytest.mark.parametrize("seed", [1, 2])
def test_hosts_that_throttle_at_once_are_one_finding(make_store: Make, seed: int) -> None:
    job = Job(seed, hosts=5)
    first, second = (int(host) for host in job.draw.permutation(5)[:2])
    gpus = [*job.gpus_of(first, 2), *job.gpus_of(second, int(job.draw.integers(1, 3)))]
    begin = int(job.draw.integers(20, 40))
    job.slow(gpus, begin)
    (finding,) = found(make_store, job)
    assert labels(finding) == gpu_labels(job, gpus)
    assert finding.loss_share == pytest.approx(job.lost_share(gpus, begin, _STEPS), abs=0.03)
    assert all(job.names[host] in finding.title for host in (first, second))


def test_the_hosts_below_a_leaf_are_named_with_it(make_store: Make) -> None:
    job = Job(1, hosts=5)
    job.slow([(host, gpu) for host in (1, 3) for gpu in range(job.each)], 30)
    rows = job.rows()
    rows["links"] = [
        {"file_id": "l", "device": f"leaf{1 + (host in (1, 3))}", "port": f"Ethernet{host}",
         "remote_device": name, "remote_port": "mlx5_0"}
        for host, name in enumerate(job.names)
    ]  # fmt: skip
    models = load_models()
    with closing(Evidence(make_store(rows))) as evidence:
        trends = trends_of(evidence, models[REST])
        (finding,) = find_by_rule(evidence, models["gpu_throttle"], trends).findings
        assert "(all hosts below leaf2)" in finding.title
        below = job.names[0], job.names[2]
        assert place_of(below, evidence) == " (2 of the 3 hosts below leaf1)"
        assert place_of((job.names[0], job.names[1]), evidence) == ""
        assert place_of(job.names, evidence) == ""


@pytest.mark.parametrize("seed", range(2))
def test_hosts_that_throttle_one_after_the_other_are_apart(make_store: Make, seed: int) -> None:
    job = Job(seed, hosts=4)
    first, second = (int(host) for host in job.draw.permutation(4)[:2])
    early, late = job.gpus_of(first, 2), job.gpus_of(second, 2)
    job.slow(early, 10, 40)
    job.slow(late, 45, 78)
    by_labels = {frozenset(labels(each)): each for each in found(make_store, job)}
    assert by_labels.keys() == {
        frozenset(gpu_labels(job, early)),
        frozenset(gpu_labels(job, late)),
    }
    for gpus, begin, end in ((early, 10, 40), (late, 45, 78)):
        loss = by_labels[frozenset(gpu_labels(job, gpus))].loss_share
        # Counters are read each five seconds: six steps.
        assert loss == pytest.approx(job.lost_share(gpus, begin, end), abs=0.07)


@pytest.mark.parametrize("near_miss", ["clocks as ever", "one sample", "a cap for all"])
def test_what_is_not_held_down_is_not_accused(make_store: Make, near_miss: str) -> None:
    """A slow rank whose clock is that of its peers is a straggler, no throttled GPU."""
    job = Job(7)
    gpus = job.gpus_of(1, 2)
    job.slow(gpus, 30, told=False)
    if near_miss == "one sample":
        job.held = dict.fromkeys(gpus, (1.3, 40, 43))
    if near_miss == "a cap for all":
        job.clock -= job.draw.uniform(300, 350, len(job.clock))
        job.reasons = _POWER_CAP
    assert found(make_store, job) == ()


@pytest.mark.parametrize("seed", range(2))
def test_failing_gpus_of_a_host_are_priced_together(make_store: Make, seed: int) -> None:
    job = Job(seed)
    host, begin = int(job.draw.integers(job.hosts)), int(job.draw.integers(20, 40))
    gpus = job.gpus_of(host, 2)
    other = job.gpus_of((host + 1) % job.hosts, 1)
    job.slow(gpus, begin)
    job.fail(gpus, begin)
    job.fail(other, begin)
    by_labels = {frozenset(labels(each)): each for each in found(make_store, job, "gpu_error")}
    assert by_labels.keys() == {
        frozenset(gpu_labels(job, gpus)),
        frozenset(gpu_labels(job, other)),
    }
    both = by_labels[frozenset(gpu_labels(job, gpus))]
    assert both.loss_share == pytest.approx(job.lost_share(gpus, begin, _STEPS), abs=0.03)
    assert both.title.startswith("GPUs ")
    assert by_labels[frozenset(gpu_labels(job, other))].loss_share is None


def test_gpus_are_listed_by_host() -> None:
    def gpus(**of_host: list[int]) -> list[Entity]:
        return [
            Entity("gpu", host=host, gpu=gpu)
            for host, numbers in of_host.items()
            for gpu in numbers
        ]

    assert listed(gpus(a=[3])) == "GPU 3 of a"
    assert listed(gpus(a=[5, 1])) == "GPUs 1 and 5 of a"
    assert listed(gpus(a=[0, 1, 2, 5, 7])) == "GPUs 0-2, 5 and 7 of a"
    assert listed(gpus(a=[0, 1], b=[0, 1], c=[4])) == "GPUs 0-1 of a and b and GPU 4 of c"
    assert listed([Entity("host", host=host) for host in "abcde"]) == "a, b, c and 2 more"


@pytest.mark.parametrize("seed", range(10))
def test_a_gpu_is_compared_with_one_that_is_not_slow(seed: int) -> None:
    """Of a host that is slow as a whole "another GPU of the host" is as slow."""
    chance = np.random.default_rng(seed)
    each, hosts = int(chance.choice([1, 4, 8])), int(chance.integers(2, 5))
    rows = [
        {"job": "run", "rank": each * host + gpu, "host": f"n{host}", "gpu": gpu}
        for host in range(hosts)
        for gpu in range(each)
    ]
    evidence: Any = SimpleNamespace(frame={"rank_gpus": pl.DataFrame(rows)}.__getitem__)
    rank = int(chance.integers(each * hosts))
    host = f"n{rank // each}"
    whole = gpus_of([Entity("host", "run", host=host)], evidence)
    assert (whole["of_gpu"], whole["sibling"]) == ("", "those of a host that is not slow")
    one = gpus_of([Entity("rank", "run", rank=rank, host=host)], evidence)
    if each == 1:
        assert (one["of_gpu"], one["sibling"]) == (" -i 0", "one of another host")
    else:
        assert one["of_gpu"].startswith(f" -i {rank % each},") and "of the host" in one["sibling"]
