"""A run that is slower than another of its job from its first step on: drawn restarts."""

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from test_jobs import START, Job, made, together

from conftest import Rows
from fabricobs.diagnosis.findings import Diagnosis, Finding
from fabricobs.diagnosis.run import diagnose

pytestmark = pytest.mark.slow

HOSTS = tuple(f"node{n}" for n in range(4))
SECONDS_APART = 10


class Restarted:
    """A job that ran twice; one run, the `slower`, takes `longer` for each step of `tokens`."""

    def __init__(self, seed: int, tokens: float = 1.0, hosts: tuple[str, ...] = HOSTS) -> None:
        self.chance = np.random.default_rng(seed)
        self.slower = int(self.chance.integers(1, 3))
        self.longer = float(self.chance.uniform(1.15, 1.6))
        self.tokens = {1: 1.0, 2: 1.0} | {self.slower: tokens}
        again = START + timedelta(seconds=80 * self.longer + float(self.chance.uniform(60, 1200)))
        second = Job("train", hosts, again, run=2, first_step=int(self.chance.integers(40, 81)))
        self.jobs = (Job("train", HOSTS, START), second)

    def of(self, job: Job) -> Rows:
        """Return what the files of a run tell."""
        rows = job.rows()
        longer = self.longer if job.run == self.slower else 1.0
        for row in rows["steps"]:
            usual, now = float(row["step_time_ms"]), row["ts"]  # type: ignore[arg-type]
            row["step_time_ms"] = longer * usual
            row["ts"] = job.begin + longer * (now - job.begin)  # type: ignore[operator]
            # A rank's own work is no part of this.
            del row["compute_ms"], row["comm_ms"]
            if self.tokens[job.run]:
                row["tokens_per_second"] = 8e6 * self.tokens[job.run] / (longer * usual)
        return rows

    def end(self, job: Job) -> datetime:
        return job.begin + timedelta(seconds=job.steps * (2.0 if job.run == self.slower else 1.1))

    def errors(self, runs: set[int]) -> Rows:
        """Symbol errors of one NIC in all the time of some runs."""
        spans = [(job.begin, self.end(job)) for job in self.jobs if job.run in runs]
        times = int((self.end(self.jobs[1]) - START).total_seconds() / SECONDS_APART) + 12
        errors, samples = 0, []
        for sample in range(-6, times):
            now = START + timedelta(seconds=SECONDS_APART * sample)
            errors += 40 * any(begin <= now <= end for begin, end in spans)
            samples += [
                {
                    "file_id": f"counters-{host}", "line": sample + 7, "format": "sysfs",
                    "device": host, "port": "mlx5_0", "ts": now, "ts_source": "inline",
                    "symbol_errors": errors * (host == HOSTS[1]), "rx_bytes": sample * 10**10,
                }
                for host in HOSTS
            ]  # fmt: skip
        return {"port_samples": samples}

    def found(self, folder: Path, *more: Rows) -> Diagnosis:
        return diagnose(made(folder / "s", together(*map(self.of, self.jobs), *more)))


def costly(found: Diagnosis) -> list[Finding]:
    return [each for each in found.findings if each.severity != "info"]


@pytest.mark.parametrize("seed", range(3))
def test_a_run_slower_than_another_of_its_job_says_so(tmp_path: Path, seed: int) -> None:
    drawn = Restarted(seed)
    found = drawn.found(tmp_path)
    (finding,) = costly(found)
    assert finding.kind == "throughput_drop"
    labels = {job.run.number: job.run.label for job in found.jobs}
    slower, faster = labels[drawn.slower], labels[3 - drawn.slower]
    assert f"longer for the same work than in the run {faster}" in finding.title
    assert finding.loss_share == pytest.approx(1 - 1 / drawn.longer, abs=0.03)
    assert finding.next_steps[0].startswith(f"Compare both runs: `fabricobs compare {faster}")
    assert [job.run.label for job in found.jobs if finding.id in job.findings] == [slower]


@pytest.mark.parametrize("seed", range(2))
def test_a_cause_that_only_the_slower_run_has_costs_what_it_lacks(
    tmp_path: Path, seed: int
) -> None:
    """GPUDirect was off after a restart; "costs not measured", and 20 % were lost."""
    drawn = Restarted(10 + seed)
    found = drawn.found(tmp_path, drawn.errors({drawn.slower}))
    (finding,) = costly(found)
    assert (finding.kind, finding.entities[0].host) == ("link_errors", HOSTS[1])
    assert finding.loss_share == pytest.approx(1 - 1 / drawn.longer, abs=0.04)
    assert "against the run " in finding.explanation


@pytest.mark.parametrize("seed", range(2))
def test_a_cause_that_both_runs_have_makes_neither_slower(tmp_path: Path, seed: int) -> None:
    drawn = Restarted(20 + seed)
    found = {f.kind: f for f in costly(drawn.found(tmp_path, drawn.errors({1, 2})))}
    assert found["link_errors"].loss_share is None
    assert found["throughput_drop"].loss_share == pytest.approx(1 - 1 / drawn.longer, abs=0.03)


@pytest.mark.parametrize("seed", range(1))
def test_another_batch_or_another_size_is_no_slower_run(tmp_path: Path, seed: int) -> None:
    larger = Restarted(30 + seed, tokens=1.5)
    assert costly(larger.found(tmp_path / "a")) == []
    smaller = Restarted(40 + seed, hosts=HOSTS[:3])
    assert costly(smaller.found(tmp_path / "b")) == []


@pytest.mark.parametrize("seed", range(1))
def test_where_no_log_tells_the_work_it_is_a_hint(tmp_path: Path, seed: int) -> None:
    (finding,) = costly(Restarted(50 + seed, tokens=0.0).found(tmp_path))
    assert (finding.severity, finding.loss_share) == ("low", None)
    assert "no log tells whether each does more work" in finding.title
