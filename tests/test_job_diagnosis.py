"""Causes in the job and its hosts: stragglers, uneven work, hangs, GPU errors, odd ones out."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conftest import Rows
from fabricobs.diagnosis.findings import SEVERITIES, Diagnosis, Finding
from fabricobs.diagnosis.run import diagnose
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 2, 9)
Make = Callable[[Rows], Path]
Times = NDArray[np.float64]


def quiet(ranks: int = 32, steps: int = 120, seed: int = 5) -> Times:
    """Computing times [S, R] of healthy ranks, in ms."""
    return np.random.default_rng(seed).normal(700, 3, (steps, ranks))


def records(compute: Times, data: Times | None = None, stages: int = 1) -> Rows:
    """Step records of ranks of which each step's last one makes the others wait."""
    ranks = compute.shape[1]
    loading = np.full_like(compute, 10.0) if data is None else data
    own = compute + loading
    step_ms = own.max(axis=1) + 210
    stage = np.broadcast_to(np.arange(ranks) * stages // ranks, compute.shape)
    comm = own.max(axis=1)[:, None] - own + 200
    columns = {"stage": stage, "compute_ms": compute, "comm_ms": comm, "data_ms": loading}
    return step_rows(step_ms, columns)


def step_rows(step_ms: Times, columns: dict[str, NDArray[Any]]) -> Rows:
    """Rows of steps that take so long [S], with what each rank tells of each [S, R] by column."""
    steps, ranks = next(iter(columns.values())).shape
    ends = np.cumsum(step_ms)
    return {
        "steps": [
            {
                "file_id": "f",
                "line": step * ranks + rank + 1,
                "step": step + 1,
                "rank": rank,
                "host": f"node{rank // 8:02d}",
                "ts": START + timedelta(milliseconds=float(ends[step])),
                "step_time_ms": float(step_ms[step]),
                **{name: values[step, rank].item() for name, values in columns.items()},
            }
            for step in range(steps)
            for rank in range(ranks)
        ]
    }


def collectives(
    arrivals: Times, members: list[list[int]], nodes: int, bytes_: int, op: str = "AllReduce"
) -> Any:
    """Calls of groups of ranks that arrive at these times [S, R] (ms); 10 ms of transfer."""
    for group, ranks in enumerate(members):
        latest = arrivals[:, ranks].max(axis=1)
        for seq in range(len(arrivals)):
            for place, rank in enumerate(ranks):
                yield {
                    "file_id": "c",
                    "comm_id": f"0x{nodes}{group}",
                    "rank": place,
                    "global_rank": rank,
                    "host": f"node{rank // 8:02d}",
                    "nranks": len(ranks),
                    "nodes": nodes,
                    "op": op,
                    "seq": seq,
                    "bytes": bytes_,
                    "ts": START + timedelta(seconds=seq),
                    "duration_us": 1000 * float(latest[seq] - arrivals[seq, rank] + 10),
                }


def at_least(found: Diagnosis, severity: str) -> list[str]:
    least = SEVERITIES.index(severity)  # type: ignore[arg-type]
    return [f.kind for f in found.findings if SEVERITIES.index(f.severity) >= least]


def of_kind(found: Diagnosis, kind: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.kind == kind]


def longer_steps(chance: np.random.Generator, since: int, times: float) -> list[dict[str, object]]:
    """Steps of a trainer's log, so many times as long from one on."""
    return [
        {
            "file_id": "s",
            "line": step + 1,
            "step": step,
            "ts": START + timedelta(seconds=step),
            "step_time_ms": chance.normal(850, 5) * (times if step >= since else 1),
        }
        for step in range(240)
    ]


class TestStragglers:
    def test_a_host_slow_in_bursts_is_one_finding_with_the_loss_of_its_bursts(
        self, make_store: Make
    ) -> None:
        compute = quiet(steps=200)
        bursts = [(80, 87), (110, 122), (150, 156), (170, 184)]
        slow = np.zeros(200, dtype=bool)
        for begin, end in bursts:
            slow[begin:end] = True
        compute[slow, 8:16] *= 1.4
        rows = records(compute)
        (finding,) = diagnose(make_store(rows)).findings
        assert (finding.kind, finding.entities[0].host) == ("straggler", "node01")
        assert finding.entities[0].type == "host"
        assert finding.bursts == tuple((begin + 1, end) for begin, end in bursts)
        own = compute[80:184]
        without = np.delete(own, np.s_[8:16], axis=1)
        lost = (own.max(axis=1) - without.max(axis=1)).sum()
        assert finding.loss_share == pytest.approx(lost / (own.max(axis=1) + 220).sum(), rel=0.05)

    @pytest.mark.parametrize("seed", range(4))
    def test_bursts_that_cost_little_silence_no_slowdown(self, make_store: Make, seed: int) -> None:
        """They cover most steps; the transfers of all become longer meanwhile."""
        draw = np.random.default_rng(seed)
        compute = quiet(steps=200)
        for begin in range(10, 200, 30):
            compute[begin : begin + 24, 3] *= draw.uniform(1.03, 1.06)
        rows = records(compute)
        since, longer = int(draw.integers(60, 120)), draw.uniform(200, 600)
        for row in rows["steps"]:
            steps = max(0, int(row["step"]) - since)
            row["ts"] += timedelta(milliseconds=longer * steps)
            row["step_time_ms"] += longer * (steps > 0)
            row["comm_ms"] += longer * (steps > 0)
        (finding,) = of_kind(diagnose(make_store(rows)), "throughput_drop")
        assert abs((finding.start_step or 0) - since) <= 2
        assert (finding.loss_share or 0) > 0.1

    @pytest.mark.parametrize(("length", "severity"), [(3, "low"), (12, "medium")])
    def test_short_bursts_name_nobody_at_medium(
        self, make_store: Make, length: int, severity: str
    ) -> None:
        compute = quiet(steps=240)
        for begin in range(20, 230, 30):
            compute[begin : begin + length, 8:16] *= 1.4
        (finding,) = of_kind(diagnose(make_store(records(compute))), "straggler")
        assert (finding.entities[0].host, finding.severity) == ("node01", severity)

    @pytest.mark.parametrize("log", ["none", "silent", "silent then", "speaks"])
    def test_a_kernel_log_that_is_there_is_not_asked_for(self, make_store: Make, log: str) -> None:
        compute = quiet(steps=240)
        compute[100:, 8:16] *= 1.4
        rows = records(compute)
        if log != "none":
            rows["files"] = [
                {"file_id": "k", "path": "/k", "formats": "kernel_log", "device": "node01"}
            ]
        if log in {"silent then", "speaks"}:
            told = START + timedelta(hours=-2 if log == "silent then" else 0, minutes=3)
            rows["events"] = [
                {"file_id": "k", "line": 1, "host": "node01", "kind": "nic_error", "ts": told}
            ]
        (finding,) = of_kind(diagnose(make_store(rows)), "straggler")
        asks = any("dmesg" in step for step in finding.next_steps)
        assert asks == (log in {"none", "speaks"})
        assert ("kernel log of node01 tells of no error" in finding.explanation) == (not asks)

    def test_steps_in_which_somebody_is_late_accuse_nobody(self, make_store: Make) -> None:
        compute = quiet(steps=200)
        chance = np.random.default_rng(8)
        for step in range(20, 200, 4):
            compute[step, chance.integers(32)] *= 1.3
        assert of_kind(diagnose(make_store(records(compute))), "straggler") == []

    @pytest.mark.parametrize(("factor", "kinds"), [(1.045, ["straggler"]), (1.015, [])])
    def test_how_small_it_may_be(self, make_store: Make, factor: float, kinds: list[str]) -> None:
        compute = quiet()
        compute[:, 3] *= factor
        found = diagnose(make_store(records(compute)))
        assert at_least(found, "low") == kinds

    def test_it_is_known_within_ten_steps(self, make_store: Make) -> None:
        compute = quiet()
        compute[60:, 3] *= 1.2
        rows = records(compute)
        (finding,) = diagnose(make_store(rows)).findings
        begun = next(row["ts"] for row in rows["steps"] if row["step"] == 60)
        assert finding.detected_at - begun < timedelta(seconds=10)  # type: ignore[operator]

    @pytest.mark.parametrize("seed", range(6))
    def test_a_host_or_rank_that_waits_for_its_data_is_told_how_long(
        self, make_store: Make, seed: int
    ) -> None:
        draw = np.random.default_rng(seed)
        usual, longer = float(draw.uniform(2, 20)), float(draw.uniform(150, 600))
        first = int(draw.integers(0, 32))
        slow = np.arange(first, first + 1) if seed % 2 else first // 8 * 8 + np.arange(8)
        data = np.full((120, 32), usual)
        data[50:, slow] = longer
        (finding,) = diagnose(make_store(records(quiet(), data))).findings
        named = finding.entities[0]
        assert (finding.kind, named.host) == ("straggler", f"node{first // 8:02d}")
        assert named.rank == (first if seed % 2 else None)
        assert f"waits {longer:,.0f} ms a step for its data since step" in finding.title
        assert f"its peers {usual:,.0f} ms" in finding.title
        assert "loader" in finding.next_steps[0]
        advised = " ".join(finding.next_steps)
        assert not any(word in advised for word in ("nvidia-smi", "lspci", "xid"))
        assert any(d.feature == "wait for data per step" for d in finding.drivers)

    def test_a_rank_that_computes_longer_is_not_sent_to_its_data(self, make_store: Make) -> None:
        compute = quiet()
        compute[50:, 3] += 300
        data = np.full((120, 32), 10.0)
        data[50:, 3] = 40.0
        (finding,) = diagnose(make_store(records(compute, data))).findings
        assert "computes" in finding.title
        assert "nvidia-smi" in finding.next_steps[0]
        assert "loader" not in " ".join(finding.next_steps)

    def test_without_records_the_shortest_collective_tells(self, make_store: Make) -> None:
        arrivals = quiet(ranks=16)
        arrivals[:, 5] += 150
        rows = list(collectives(arrivals, [list(range(16))], 2, 1 << 30))
        (finding,) = diagnose(make_store({"collectives": rows})).findings
        assert (finding.entities[0].rank, finding.entities[0].host) == (5, "node00")
        assert "arrives" in finding.title

    @pytest.mark.parametrize(("since", "loss"), [(100, 0.15), (160, None)])
    def test_a_late_arrival_has_the_loss_of_the_longer_steps_that_begin_with_it(
        self, make_store: Make, since: int, loss: float | None
    ) -> None:
        arrivals = quiet(ranks=16, steps=240)
        arrivals[100:, 5] += 30
        steps = longer_steps(np.random.default_rng(3), since, 1 / 0.85)
        calls = list(collectives(arrivals, [list(range(16))], 2, 1 << 30))
        found = diagnose(make_store({"collectives": calls, "steps": steps}))
        (slow,) = of_kind(found, "straggler")
        assert slow.entities[0].rank == 5
        if loss is None:
            assert (slow.loss_share or 0.0) < 0.05
            assert "throughput_drop" in at_least(found, "low")
        else:
            assert slow.loss_share == pytest.approx(loss, abs=0.02)
            assert (slow.severity, slow.start_step) == ("high", pytest.approx(100, abs=5))
            assert at_least(found, "low") == ["straggler"]

    @pytest.mark.parametrize("seed", range(4))
    def test_a_rank_that_was_late_before_has_no_part_in_more_work_of_all(
        self, make_store: Make, seed: int
    ) -> None:
        """The batch doubled: a rank that is late by 2 % of a step "cost 23.8 %", critical."""
        chance = np.random.default_rng(seed)
        grows, late = float(chance.uniform(1.15, 1.25)), float(chance.uniform(12, 18))
        arrivals = quiet(ranks=16, steps=240)
        arrivals[:, 5] += late
        arrivals[100:, 5] += 1.5 * late
        steps = longer_steps(chance, 100, grows)
        calls = list(collectives(arrivals, [list(range(16))], 2, 1 << 30))
        found = diagnose(make_store({"collectives": calls, "steps": steps}))
        assert all((f.loss_share or 0.0) < 0.08 for f in of_kind(found, "straggler"))
        (drop,) = of_kind(found, "throughput_drop")
        assert drop.loss_share is None

    def test_within_a_tensor_group_too(self, make_store: Make) -> None:
        own = quiet(ranks=32)
        own[:, 13] += 150
        groups = [list(range(first, first + 8)) for first in range(0, 32, 8)]
        together = own.copy()
        for group in groups:
            together[:, group] = own[:, group].max(axis=1, keepdims=True)
        data = [list(range(place, 32, 8)) for place in range(8)]
        rows = [*collectives(own, groups, 1, 1 << 26), *collectives(together, data, 4, 1 << 30)]
        (finding,) = diagnose(make_store({"collectives": rows})).findings
        assert (finding.entities[0].type, finding.entities[0].rank) == ("rank", 13)

    def test_records_of_one_rank_leave_it_to_the_groups_in_which_it_is_late_first(
        self, make_store: Make
    ) -> None:
        own = quiet(ranks=32)
        own[:, 13] += 150
        experts = [list(range(16)), list(range(16, 32))]
        together = own.copy()
        for group in experts:
            together[:, group] = own[:, group].max(axis=1, keepdims=True)
        calls = [
            *collectives(own, experts, 2, 1 << 26, "All2All"),
            *collectives(together, [list(range(32))], 4, 1 << 30),
        ]
        of_rank_0 = [row for row in records(own)["steps"] if row["rank"] == 0]
        found = diagnose(make_store({"collectives": calls, "steps": of_rank_0}))
        (slow,) = of_kind(found, "straggler")
        assert [entity.rank for entity in slow.entities] == [13]

    @pytest.mark.parametrize("seed", range(4))
    def test_a_group_of_what_is_left_does_not_stand_for_all(
        self, make_store: Make, seed: int
    ) -> None:
        """Of 53 hosts in groups of 4 one is left: its 8 ranks alone were looked at."""
        chance = np.random.default_rng(seed)
        hosts = 2 * int(chance.integers(2, 6)) + 1
        own = quiet(ranks=8 * hosts)
        slow = int(chance.integers(hosts - 1))
        own[:, 8 * slow : 8 * slow + 8] += 150
        experts = [
            list(range(first, min(first + 16, 8 * hosts))) for first in range(0, 8 * hosts, 16)
        ]
        together = own.copy()
        for group in experts:
            together[:, group] = own[:, group].max(axis=1, keepdims=True)
        calls = [
            *collectives(own, experts[:-1], 2, 1 << 26, "All2All"),
            *collectives(own, experts[-1:], 1, 1 << 26, "All2All"),
            *collectives(together, [list(range(8 * hosts))], hosts, 1 << 30),
        ]
        (found,) = of_kind(diagnose(make_store({"collectives": calls})), "straggler")
        assert [entity.host for entity in found.entities] == [f"node{slow:02d}"]


class TestUnevenWork:
    def test_a_long_stage_is_the_works_fault(self, make_store: Make) -> None:
        compute = quiet()
        compute[:, 24:] *= 1.3
        (finding,) = diagnose(make_store(records(compute, stages=4))).findings
        assert finding.kind == "workload_imbalance"
        assert finding.entities[0].type == "job"
        assert "stage 3 (ranks 24-31)" in finding.title
        assert finding.drivers[1].value >= 0.8

    def test_a_stage_that_costs_two_per_cent_is_told(self, make_store: Make) -> None:
        """It was "60 ranks compute alike" where the last third needs 8 % longer in every step."""
        compute = quiet(ranks=96)
        compute[:, 64:] *= 1.08
        found = diagnose(make_store(records(compute, stages=3)))
        (finding,) = found.findings
        assert (finding.kind, finding.severity) == ("workload_imbalance", "low")
        (rank,) = (q for q in found.verdict.questions if "rank slow" in q.question)
        assert "96 ranks compute like their peers" in rank.evidence

    def test_the_stages_of_records_without_one_are_those_of_the_groups(
        self, make_store: Make
    ) -> None:
        compute = quiet()
        compute[:, 24:] *= 1.3
        groups = [list(range(first, first + 8)) for first in range(0, 32, 8)]
        everyone = [list(range(32))]
        calls = [
            *collectives(compute[:3], groups, 1, 1 << 30),
            *collectives(compute[:3], everyone, 4, 4),
        ]
        rows = records(compute) | {"collectives": calls}
        (finding,) = diagnose(make_store(rows)).findings
        assert finding.kind == "workload_imbalance"
        assert "stage 3 (ranks 24-31)" in finding.title

    def test_another_rank_last_in_every_step(self, make_store: Make) -> None:
        compute = np.random.default_rng(2).normal(700, 70, (120, 32))
        (finding,) = diagnose(make_store(records(compute))).findings
        assert finding.kind == "workload_imbalance"
        lost = compute[10:].max(axis=1) - np.median(compute[10:], axis=1)
        assert finding.loss_share == pytest.approx(
            lost.sum() / (compute[10:].max(axis=1) + 220).sum(), rel=0.05
        )

    @pytest.mark.parametrize("ranks", [32, 128])
    @pytest.mark.parametrize("law", ["normal", "t"])
    @pytest.mark.parametrize("spread", [0.01, 0.03, 0.05])
    def test_ranks_that_vary_a_little_are_even(
        self, make_store: Make, spread: float, law: str, ranks: int
    ) -> None:
        chance = np.random.default_rng(round(1000 * spread) + ranks)
        drawn = (
            chance.standard_t(4, (80, ranks)) if law == "t" else chance.normal(0, 1, (80, ranks))
        )
        found = diagnose(make_store(records(700 * (1 + spread * drawn))))
        assert of_kind(found, "workload_imbalance") == []

    def test_loading_that_is_slow_for_all(self, make_store: Make) -> None:
        data = np.full((120, 32), 10.0)
        data[70:] = 250.0
        (finding,) = diagnose(make_store(records(quiet(), data))).findings
        assert (finding.kind, finding.start_step) == ("workload_imbalance", 71)
        assert finding.loss_share == pytest.approx(240 / 1170, abs=0.01)

    @pytest.mark.parametrize(("usual", "least"), [(40.0, "low"), (70.0, "low"), (400.0, "high")])
    @pytest.mark.parametrize("seed", range(2))
    def test_loading_that_is_slow_in_all_steps_costs_what_the_slowest_waits(
        self, make_store: Make, seed: int, usual: float, least: str
    ) -> None:
        """Long waits were told as ranks that vary; some wait in every step accuses nobody."""
        chance = np.random.default_rng(seed)
        data = usual * chance.gamma(4, 1 / 4, (120, 32))
        compute = quiet(seed=seed)
        found = diagnose(make_store(records(compute, data)))
        findings = of_kind(found, "workload_imbalance")
        if usual == 40.0:
            assert findings == []
            return
        own = (compute + data)[10:].max(axis=1)
        saved = own - compute[10:].max(axis=1)
        assert "wait" in findings[0].title
        assert findings[0].loss_share == pytest.approx(saved.sum() / (own + 210).sum(), abs=0.02)
        assert SEVERITIES.index(findings[0].severity) >= SEVERITIES.index(least)  # type: ignore[arg-type]
        assert (findings[0].severity == "low") == (least == "low")

    @pytest.mark.parametrize("spread", [0.2, 0.6, 0.9])
    def test_loading_that_is_slow_for_all_in_turn_is_priced_by_the_slowest(
        self, make_store: Make, spread: float
    ) -> None:
        data = 50 * np.random.default_rng(5).lognormal(0, spread, (120, 32))
        data[60:] *= 12
        rows = records(quiet(), data)
        found = diagnose(make_store(rows)).findings
        assert found[0].kind == "workload_imbalance"
        assert "for their data since step 61" in found[0].title
        step_ms = np.array([row["step_time_ms"] for row in rows["steps"]]).reshape(120, 32)[:, 0]
        loss = 1 - step_ms[10:60].mean() / step_ms[60:].mean()  # type: ignore[operator]
        assert found[0].loss_share == pytest.approx(loss, abs=0.03)
        assert "throughput_drop" not in {finding.kind for finding in found}

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_even_work_is_not_accused(self, make_store: Make, seed: int) -> None:
        found = diagnose(make_store(records(quiet(seed=seed), stages=4)))
        assert found.findings == ()

    def test_one_slow_rank_is_not_the_works_fault(self, make_store: Make) -> None:
        compute = quiet()
        compute[30:, 7] *= 1.3
        found = diagnose(make_store(records(compute)))
        assert at_least(found, "low") == ["straggler"]

    def test_the_published_trace_of_a_long_last_stage(self, corpus: Path, tmp_path: Path) -> None:
        ingest([corpus / "steps" / "bytedance_ST"], Store(tmp_path / "s"), Options())
        (finding,) = diagnose(tmp_path / "s").findings
        assert finding.kind == "workload_imbalance"
        assert "stage 3 (ranks 6-7)" in finding.title
        # Its authors' what-if analysis: 1.219 times as long as without the last stage's excess.
        assert finding.loss_share == pytest.approx(1 - 1 / 1.219, abs=0.01)


def stalled(silent: int, ranks: int = 16) -> list[dict[str, object]]:
    """What PyTorch's watchdogs say when one rank never called collective 361."""
    return [
        {
            "file_id": "w",
            "kind": "watchdog_timeout",
            "rank": rank,
            "launch_rank": rank,
            "op": "ALLREDUCE",
            "seq": 361,
            "duration_ms": 600_000.0,
        }
        for rank in range(ranks)
        if rank != silent
    ]


class TestHangs:
    def test_the_rank_without_a_timeout_is_missing(self, make_store: Make) -> None:
        rows = records(quiet(ranks=16, steps=40)) | {"nccl_events": stalled(11)}
        found = diagnose(make_store(rows))
        (finding,) = found.findings
        assert (finding.kind, finding.severity) == ("hang", "critical")
        assert found.verdict.questions[0].answer == "problem"
        assert "stands still" in found.verdict.questions[0].evidence
        assert (finding.entities[0].rank, finding.entities[0].host) == (11, "node01")
        assert (finding.start_step, finding.loss_share) == (41, 1.0)
        assert (finding.state, finding.to_its_end) == ("ongoing", False)
        assert (finding.end - finding.start) == timedelta(seconds=600)  # type: ignore[operator]

    def test_it_ended_when_the_last_watchdog_says_so(self, make_store: Make) -> None:
        """What the clock of one host tells an hour later is left out."""
        events = stalled(11)
        gave_up = [event for event in events if event["kind"] == "watchdog_timeout"]
        for number, event in enumerate(gave_up):
            event["ts"] = START + timedelta(minutes=11, milliseconds=100 * number)
        gave_up[0]["ts"] += timedelta(hours=1)
        rows = records(quiet(ranks=16, steps=40)) | {"nccl_events": events}
        (finding,) = diagnose(make_store(rows)).findings
        assert finding.end == gave_up[-1]["ts"]
        assert finding.title.startswith("rank 11 on node01 stopped reporting after step 40")

    def test_a_job_that_its_watchdog_ended_is_told_as_over(self, make_store: Make) -> None:
        events = stalled(11)
        events.append(
            {
                "file_id": "w",
                "kind": "watchdog",
                "launch_rank": 0,
                "text": "To avoid data inconsistency, we are taking the entire process down.",
            }
        )
        rows = records(quiet(ranks=16, steps=40)) | {"nccl_events": events}
        (finding,) = diagnose(make_store(rows)).findings
        assert (finding.state, finding.to_its_end) == ("over", True)
        assert "15 of 16 ranks waited" in finding.title
        assert "ended the processes of 1 rank: the job is over" in finding.explanation
        assert finding.next_steps[0].startswith("On node01: `dmesg -T | tail -50`")
        assert "what it logged last after step 40" in finding.next_steps[0]
        assert finding.next_steps[-1].startswith("If it comes back, on node01: `py-spy")

    def test_its_wait_counts_though_no_line_has_so_late_a_time(self, make_store: Make) -> None:
        rows = records(quiet(ranks=16, steps=40)) | {"nccl_events": stalled(11)}
        rows["steps"] = [{**row, "ts_source": "inline"} for row in rows["steps"]]
        found = diagnose(make_store(rows))
        (finding,) = found.findings
        assert finding.end is not None and finding.start is not None
        assert finding.end - finding.start == timedelta(seconds=600)
        assert finding.gpu_hours_lost == pytest.approx(16 * 600 / 3600, abs=0.01)

    def test_a_recorder_shows_who_is_behind_although_several_say_nothing(
        self, make_store: Make
    ) -> None:
        events = stalled(11)[:10]
        for rank in range(16):
            events.append(
                {
                    "file_id": "r",
                    "kind": "group_progress",
                    "process_group": "0 dp",
                    "rank": rank,
                    "last_enqueued": 360 if rank == 11 else 361,
                    "last_completed": 360,
                }
            )
        rows = records(quiet(ranks=16, steps=40)) | {"nccl_events": events}
        (finding,) = diagnose(make_store(rows)).findings
        assert [entity.rank for entity in finding.entities] == [11]

    def test_a_rank_of_which_there_is_no_log_at_all_is_missing(self, make_store: Make) -> None:
        (finding,) = diagnose(make_store({"nccl_events": stalled(11)})).findings
        assert [(entity.rank, entity.host) for entity in finding.entities] == [(11, None)]
        assert "rank 11 alone reported nothing" in finding.explanation

    def test_where_most_logs_are_missing_no_rank_is_named(self, make_store: Make) -> None:
        (finding,) = diagnose(make_store({"nccl_events": stalled(3)[::8]})).findings
        assert finding.entities[0].type == "job"
        assert "2 of 2 ranks that tell wait" in finding.title

    def test_where_all_have_launched_no_rank_is_named(self, make_store: Make) -> None:
        rows = records(quiet(ranks=16, steps=40)) | {"nccl_events": stalled(-1)}
        (finding,) = diagnose(make_store(rows)).findings
        assert (finding.kind, finding.entities[0].type) == ("hang", "job")

    def test_a_job_that_ended_is_no_hang(self, make_store: Make) -> None:
        rows = records(quiet(ranks=16, steps=40))
        rows["nccl_events"] = [
            {
                "file_id": "r",
                "kind": "group_progress",
                "process_group": "0 dp",
                "rank": rank,
                "last_enqueued": 360 + (rank == 3),
                "last_completed": 360,
            }
            for rank in range(16)
        ]
        assert diagnose(make_store(rows)).findings == ()


def nccl(ranks: int = 32, **changes: Any) -> Rows:
    """NCCL's statements of a healthy job; `changes` are column to (ranks, value) of nccl_ranks."""
    members = [
        {
            "file_id": "n",
            "line": rank + 1,
            "host": f"node{rank // 8:02d}",
            "pid": 100 + rank,
            "rank": rank,
            "nranks": ranks,
            "nodes": ranks // 8,
            "comm": f"0x{rank}",
            "comm_id": "0xabc",
            "nvml_device": rank % 8,
            "bus_id": f"{0x10 + rank % 8:x}000",
            "network": "IB",
            "ring_gdr": True,
            "version": "2.28.9",
        }
        for rank in range(ranks)
    ]
    for column, (chosen, value) in changes.items():
        for rank in chosen:
            members[rank][column] = value
    return {"nccl_ranks": members}


def xid(code: int, host: str, bus: str) -> dict[str, object]:
    moment = START + timedelta(seconds=50)
    return {"file_id": "k", "host": host, "kind": "xid", "code": code, "part": bus, "ts": moment}


class TestGpuErrors:
    def test_a_slow_rank_on_a_failing_gpu_is_one_finding(self, make_store: Make) -> None:
        compute = quiet()
        compute[54:, 11] *= 1.2
        rows = records(compute) | nccl() | {"events": [xid(63, "node01", "0000:13:00")]}
        (finding,) = diagnose(make_store(rows)).findings
        assert finding.kind == "gpu_error"
        assert (finding.entities[0].host, finding.entities[0].gpu) == ("node01", 3)
        assert finding.related[0].rank == 11
        assert finding.loss_share == pytest.approx(140 / 1060, abs=0.01)
        assert set(finding.families) == {"log", "timing"}

    def test_the_loss_of_the_slow_rank_stands_where_no_log_tells_whose_the_gpu_is(
        self, make_store: Make
    ) -> None:
        """A remapped row is information, but not when the rank that is slow with it loses 13 %."""
        compute = quiet()
        compute[54:, 11] *= 1.2
        rows = records(compute) | {"events": [xid(63, "node01", "0000:db:00")]}
        (finding,) = diagnose(make_store(rows)).findings
        assert (finding.kind, finding.severity) == ("gpu_error", "high")
        assert finding.loss_share == pytest.approx(140 / 1060, abs=0.01)
        assert [entity.rank for entity in finding.entities] == [11, None]
        assert "cannot be told" not in finding.explanation

    def test_an_error_elsewhere_does_not_explain_a_straggler(self, make_store: Make) -> None:
        compute = quiet()
        compute[54:, 11] *= 1.2
        rows = records(compute) | nccl() | {"events": [xid(63, "node03", "0000:13:00")]}
        assert at_least(diagnose(make_store(rows)), "low") == ["straggler"]

    def test_an_error_of_one_does_not_explain_what_several_do_alike(self, make_store: Make) -> None:
        compute = quiet()
        compute[54:, 8:24] *= 1.2
        rows = records(compute) | nccl() | {"events": [xid(63, "node01", "0000:13:00")]}
        assert "straggler" in at_least(diagnose(make_store(rows)), "low")

    @pytest.mark.parametrize(("code", "severity"), [(79, "medium"), (63, "info"), (13, None)])
    def test_how_bad_it_is_without_a_loss(
        self, make_store: Make, code: int, severity: str | None
    ) -> None:
        rows = records(quiet()) | nccl() | {"events": [xid(code, "node01", "0000:13:00.0")]}
        found = of_kind(diagnose(make_store(rows)), "gpu_error")
        assert [finding.severity for finding in found] == ([severity] if severity else [])


def nvidia_smi(folder: Path, clocks: Times, reasons: NDArray[np.int64], chance: Any) -> Path:
    """Write what a loop of nvidia-smi prints on each host of 4 GPUs, clocks [samples, GPUs] in MHz.

    Hosts sample at times of their own, and their clocks differ.
    """
    folder.mkdir()
    for host in range(clocks.shape[1] // 4):
        lines = [
            "timestamp, index, clocks.sm [MHz], utilization.gpu [%], clocks_throttle_reasons.active"
        ]
        begin = START + timedelta(seconds=float(chance.normal(0, 3)))
        for sample in range(len(clocks)):
            moment = begin + timedelta(seconds=10 * sample)
            for gpu in range(4):
                place = sample, 4 * host + gpu
                stamp = moment.strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
                cells = f"{clocks[place]:.0f} MHz, 99 %, 0x{reasons[place]:016x}"
                lines.append(f"{stamp}, {gpu}, {cells}")
        (folder / f"node{host:02d}").mkdir()
        (folder / f"node{host:02d}" / "gpus.csv").write_text("\n".join(lines) + "\n")
    return folder


class TestSeveralSlowAtOnce:
    """Each alone would win nothing back: another one like it holds the job up as much."""

    def test_two_ranks(self, make_store: Make) -> None:
        compute = quiet(ranks=64)
        compute[:, [5, 37]] *= 1.15
        found = diagnose(make_store(records(compute)))
        (finding,) = of_kind(found, "straggler")
        assert [entity.rank for entity in finding.entities] == [5, 37]
        assert finding.loss_share == pytest.approx(105 / 1025, abs=0.01)
        assert finding.title == (
            "rank 5 on node00 and rank 37 on node04 compute 15% longer than their peers"
        )
        assert (
            found.verdict.questions[0].evidence == "Some: rank 5 on node00 and rank 37 on node04."
        )
        assert found.verdict.questions[1].answer == "problem"

    @pytest.mark.parametrize("seed", range(3))
    def test_the_hosts_below_a_leaf(self, make_store: Make, seed: int) -> None:
        chance = np.random.default_rng(seed)
        compute = quiet(ranks=64, seed=seed)
        leaf = int(chance.integers(4))
        compute[40:, 16 * leaf : 16 * leaf + 16] *= 1 + chance.uniform(0.08, 0.3)
        rows = records(compute)
        rows["links"] = [
            {
                "file_id": "l",
                "device": f"leaf{host // 2}",
                "port": f"Ethernet{host}",
                "remote_device": f"node{host:02d}",
                "remote_port": "mlx5_0",
            }
            for host in range(8)
        ]
        (finding,) = of_kind(diagnose(make_store(rows)), "straggler")
        assert [e.host for e in finding.entities] == [f"node{2 * leaf + i:02d}" for i in range(2)]
        assert f"(all hosts below leaf{leaf})" in finding.title
        assert finding.start_step == pytest.approx(41, abs=3)

    @pytest.mark.parametrize("seed", range(5))
    def test_a_short_stretch_soon_after_the_warm_up_begins_before_it_ends(
        self, make_store: Make, seed: int
    ) -> None:
        """Its begin is no change point, so near the first step, and its end was taken for it."""
        chance = np.random.default_rng(seed)
        begin = int(chance.integers(11, 15))
        end = begin + int(chance.integers(12, 18))
        compute = quiet(steps=80, seed=seed)
        compute[begin:end, 8:16] *= 1.3
        (finding,) = of_kind(diagnose(make_store(records(compute))), "straggler")
        assert (finding.start_step, finding.end_step) == (begin + 1, end)
        assert finding.loss_share == pytest.approx(210 / 1130, abs=0.02)

    def test_more_than_a_third_from_the_start_may_be_built_so(self, make_store: Make) -> None:
        compute = quiet(ranks=64)
        compute[:, :24] *= 1.08
        (finding,) = of_kind(diagnose(make_store(records(compute))), "straggler")
        assert [entity.host for entity in finding.entities] == ["node00", "node01", "node02"]
        assert finding.severity == "medium"
        assert "two groups, which may be built so" in finding.explanation

    @pytest.mark.parametrize("spread", [0.004, 0.05])
    @pytest.mark.parametrize("parts", [2, 4])
    def test_a_last_stage_without_labels_is_the_works_or_built_so(
        self, make_store: Make, parts: int, spread: float
    ) -> None:
        compute = 700 * (1 + np.random.default_rng(parts).normal(0, spread, (120, 64)))
        compute[:, 64 - 64 // parts :] *= 1.3
        found = diagnose(make_store(records(compute)))
        assert at_least(found, "low") == ["workload_imbalance"]
        finding = found.findings[0]
        assert f"The last ranks ({64 - 64 // parts}-63) compute" in finding.title
        assert finding.drivers[0].value == pytest.approx(0.3, abs=0.02)
        assert "No log names pipeline stages" in finding.explanation
        assert finding.loss_share == pytest.approx(210 / (910 * (1 + 2.3 * spread) + 220), abs=0.02)

    @pytest.mark.parametrize("seed", range(4))
    def test_a_last_stage_while_others_are_as_slow_for_a_while(
        self, make_store: Make, seed: int
    ) -> None:
        """In these steps more ranks were slow than the last part: no step told of a stage then."""
        chance = np.random.default_rng(seed)
        parts, slower = int(chance.choice([2, 4])), chance.uniform(0.2, 0.6)
        compute = 700 * (1 + chance.normal(0, 0.01, (160, 64)))
        compute[:, 64 - 64 // parts :] *= 1 + slower
        begin, last = int(chance.integers(20, 60)), int(chance.integers(90, 130))
        others = chance.choice(64 - 64 // parts, 2, replace=False)
        compute[begin:last, others] *= 1 + slower * chance.uniform(0.9, 1)
        (stage,) = of_kind(diagnose(make_store(records(compute))), "workload_imbalance")
        assert f"The last ranks ({64 - 64 // parts}-63) compute" in stage.title

    @pytest.mark.parametrize("last", [True, False])
    @pytest.mark.parametrize("seed", range(3))
    def test_one_host_of_the_last_ranks_may_be_a_stage(
        self, make_store: Make, seed: int, last: bool
    ) -> None:
        """Of a job of few hosts the last one, slow in all steps, may have more layers."""
        chance = np.random.default_rng(seed)
        hosts = int(chance.integers(3, 9))
        slow = hosts - 1 if last else int(chance.integers(hosts - 1))
        compute = 700 * (1 + chance.normal(0, 0.01, (120, 8 * hosts)))
        compute[:, 8 * slow : 8 * slow + 8] *= 1.3
        (finding,) = of_kind(diagnose(make_store(records(compute))), "straggler")
        assert [entity.host for entity in finding.entities] == [f"node{slow:02d}"]
        assert ("pipeline stage of one host" in finding.explanation) is last
        assert ("Ask the owner of the job" in finding.next_steps[0]) is last

    @pytest.mark.parametrize("hosts", [2, 4, 8])
    @pytest.mark.parametrize("seed", range(3))
    def test_half_of_the_hosts(self, make_store: Make, seed: int, hosts: int) -> None:
        """The median of all ranks lay between the halves: none was slow, or some by little."""
        chance = np.random.default_rng(seed)
        spread, slower = chance.uniform(0.003, 0.04), chance.uniform(0.15, 0.5)
        slow = np.sort(chance.choice(hosts, hosts // 2, replace=False))
        begin, end = int(chance.integers(20, 50)), int(chance.integers(100, 150))
        compute = 700 * (1 + chance.normal(0, spread, (160, 8 * hosts)))
        compute[begin:end, np.isin(np.arange(8 * hosts) // 8, slow)] *= 1 + slower
        (finding,) = of_kind(diagnose(make_store(records(compute))), "straggler")
        assert [e.host for e in finding.entities] == [f"node{host:02d}" for host in slow]
        assert finding.start_step == pytest.approx(begin + 1, abs=3)
        assert finding.end_step == pytest.approx(end, abs=3)
        lost = 700 * slower / (700 * (1 + slower) * (1 + 2.3 * spread) + 220)
        assert finding.loss_share == pytest.approx(lost, abs=0.03)
        assert finding.severity in {"medium", "high", "critical"}

    def test_six_of_sixteen_hosts_are_not_alike(self, make_store: Make) -> None:
        compute = quiet(ranks=128)
        compute[:, np.isin(np.arange(128) // 8, [0, 2, 5, 7, 11, 14])] *= 1.08
        found = diagnose(make_store(records(compute)))
        (finding,) = of_kind(found, "straggler")
        assert len(finding.entities) == 6 and "two groups" in finding.explanation
        assert found.verdict.questions[1].answer == "problem"

    @pytest.mark.parametrize("seed", range(4))
    def test_one_slow_for_a_part_of_the_time_is_a_cause_of_its_own(
        self, make_store: Make, seed: int
    ) -> None:
        """It was a culprit of what the other one cost all the time, from the first step."""
        chance = np.random.default_rng(seed)
        compute = quiet(ranks=64, steps=200, seed=seed)
        compute[:, 8:16] *= 1.4
        begin = int(chance.integers(40, 80))
        compute[begin : begin + 60, 30] *= chance.uniform(1.35, 1.4)
        found = of_kind(diagnose(make_store(records(compute))), "straggler")
        assert {len(f.entities) for f in found} == {1}
        (host,) = (f for f in found if f.entities[0].host == "node01")
        assert (host.start_step, host.end_step) == (11, 200)
        (rank,) = (f for f in found if f.entities[0].rank == 30)
        assert rank.start_step == pytest.approx(begin + 1, abs=3)
        assert rank.end_step == pytest.approx(begin + 60, abs=3)

    def test_a_slower_one_is_priced_apart(self, make_store: Make) -> None:
        compute = quiet()
        compute[:, 3] *= 1.4
        compute[:, 20] *= 1.2
        found = of_kind(diagnose(make_store(records(compute))), "straggler")
        losses = {f.entities[0].rank: f.loss_share for f in found}
        assert losses == {
            3: pytest.approx(140 / 1200, abs=0.01),
            20: pytest.approx(140 / 1200, abs=0.01),
        }


class TestWhatWouldHaveShown:
    def test_a_rank_slow_beside_much_noise_is_told_though_it_costs_little(
        self, make_store: Make
    ) -> None:
        compute = 700 * (1 + np.random.default_rng(1).normal(0, 0.1, (300, 64)))
        compute[80:280, 9] *= 1.15
        found = diagnose(make_store(records(compute)))
        (finding,) = of_kind(found, "straggler")
        assert (finding.entities[0].rank, finding.severity) == (9, "info")
        assert "rank 9 on node01" in found.verdict.questions[1].evidence

    def test_alike_says_how_much_would_have_shown(self, make_store: Make) -> None:
        question = diagnose(make_store(records(quiet()))).verdict.questions[1]
        assert question.answer == "ok"
        assert "a rank that computes 3% longer for 40 steps would have shown" in question.evidence

    def test_ranks_that_vary_too_much_for_one_to_show_are_not_called_alike(
        self, make_store: Make
    ) -> None:
        compute = 700 * np.random.default_rng(2).gamma(8, 1 / 8, (120, 32))
        question = diagnose(make_store(records(compute))).verdict.questions[1]
        assert question.answer == "unknown"
        assert "would show" in question.evidence


class TestThrottledGpus:
    @pytest.mark.parametrize("seed", range(4))
    def test_a_gpu_below_its_peers_is_named_with_its_reason(
        self, tmp_path: Path, seed: int
    ) -> None:
        chance = np.random.default_rng(seed)
        gpus, samples = 4 * int(chance.integers(2, 6)), int(chance.integers(12, 40))
        clocks = chance.normal(1700, chance.uniform(0, 15), (samples, gpus))
        reasons = np.full((samples, gpus), 4)  # all are at their power limit, as under load
        culprit, begin = int(chance.integers(gpus)), int(chance.integers(samples // 2))
        clocks[begin:, culprit] *= 1 - chance.uniform(0.1, 0.4)
        reasons[begin:, culprit] = 0x20
        logs = nvidia_smi(tmp_path / "logs", clocks, reasons, chance)
        store = Store(tmp_path / "store")
        ingest([logs], store, Options())
        (finding,) = diagnose(store.path).findings
        assert finding.kind == "gpu_throttle"
        assert (finding.entities[0].host, finding.entities[0].gpu) == (
            f"node{culprit // 4:02d}",
            culprit % 4,
        )
        assert "its temperature" in finding.title
        questions = diagnose(store.path).verdict.questions
        assert questions[1].answer == "problem"

    def test_gpus_that_differ_by_chance_or_idle_are_not_named(self, tmp_path: Path) -> None:
        chance = np.random.default_rng(3)
        clocks = chance.normal(1700, 40, (20, 12))
        reasons = np.full((20, 12), 4)
        clocks[:, 5], reasons[:, 5] = 345, 1
        logs = nvidia_smi(tmp_path / "logs", clocks, reasons, chance)
        ingest([logs], Store(tmp_path / "store"), Options())
        assert of_kind(diagnose(tmp_path / "store"), "gpu_throttle") == []

    def test_its_loss_is_that_of_its_rank(self, make_store: Make) -> None:
        compute = quiet()
        compute[:, 11] *= 1.2
        rows = records(compute) | nccl()
        rows["gpu_samples"] = [
            {
                "file_id": "g",
                "host": f"node{rank // 8:02d}",
                "gpu": rank % 8,
                "ts": START + timedelta(seconds=5 * sample),
                "sm_clock_mhz": 1980 / (1.2 if rank == 11 else 1),
                "throttle_reasons": 0x40 if rank == 11 else 0,
            }
            for sample in range(20)
            for rank in range(32)
        ]
        (finding,) = diagnose(make_store(rows)).findings
        assert (finding.kind, finding.entities[0].rank) == ("gpu_throttle", 11)
        assert finding.loss_share == pytest.approx(140 / 1060, abs=0.01)
        assert {"log", "timing"} <= set(finding.families)


class TestOddOnesOut:
    def test_gpudirect_off_on_one_host(self, make_store: Make) -> None:
        rows = nccl(ring_gdr=(range(8, 16), False))
        (finding,) = diagnose(make_store(rows)).findings
        assert (finding.kind, finding.severity) == ("gdr_disabled", "medium")
        assert (finding.entities[0].type, finding.entities[0].host) == ("host", "node01")
        assert "3 of 4 hosts" in finding.explanation

    def test_gpudirect_off_for_two_ranks(self, make_store: Make) -> None:
        (finding,) = diagnose(make_store(nccl(ring_gdr=([9, 10], False)))).findings
        assert [entity.rank for entity in finding.entities] == [9, 10]

    def test_gpudirect_off_everywhere_is_about_the_job(self, make_store: Make) -> None:
        (finding,) = diagnose(make_store(nccl(ring_gdr=(range(32), False)))).findings
        assert (finding.kind, finding.entities[0].type) == ("gdr_disabled", "job")

    def test_sockets_beside_rdma(self, make_store: Make) -> None:
        rows = nccl(network=(range(16, 24), "Socket"), ring_gdr=(range(16, 24), False))
        fact = {"file_id": "n", "host": "node02", "fact": "rdma_device", "value": "none found"}
        rows["hosts"] = [fact]
        (finding,) = diagnose(make_store(rows)).findings
        assert (finding.kind, finding.entities[0].host) == ("socket_fallback", "node02")
        assert "none found (3 of 4 hosts: found)" in finding.explanation

    def test_a_peer_of_sockets_has_gpudirect_all_the_same(self, make_store: Make) -> None:
        rows = nccl(network=(range(16, 24), "Socket"), ring_gdr=(range(16, 24), False))
        rows["nccl_channels"] = [
            {
                "file_id": "n",
                "line": 100 + 2 * rank + connection,
                "host": f"node{rank // 8:02d}",
                "pid": 100 + rank,
                "kind": "connection",
                "transport": "NET",
                "network": network,
                "gdr": network == "IB",
            }
            for rank in range(8, 16)
            for connection, network in enumerate(("IB", "Socket"))
        ]
        found = diagnose(make_store(rows))
        assert [f.kind for f in found.findings] == ["socket_fallback"]
        asked = found.verdict.questions[5]
        assert asked.answer == "problem"
        assert asked.evidence == "On for 24 ranks; 8 ranks on node02 use sockets, without it."

    def test_sockets_where_there_is_nothing_else(self, make_store: Make) -> None:
        rows = nccl(network=(range(32), "Socket"), ring_gdr=(range(32), False))
        assert diagnose(make_store(rows)).findings == ()

    @staticmethod
    def through(foreign: list[int]) -> Rows:
        rows = nccl()
        rows["nccl_nics"] = [
            {
                "file_id": "n",
                "host": member["host"],
                "pid": member["pid"],
                "nic_index": index,
                "nic": f"mlx5_{index}",
                "plugin": "IB",
            }
            for member in rows["nccl_ranks"]
            for index in range(8)
        ]
        rows["nccl_channels"] = [
            {
                "file_id": "n",
                "host": f"node{rank // 8:02d}",
                "pid": 100 + rank,
                "kind": "connection",
                "channel": 0,
                "transport": "NET",
                "side": "send",
                "network": "IB",
                "gdr": True,
                "nic_index": (rank + 4 * (rank // 8 in foreign)) % 8,
            }
            for rank in range(32)
        ]
        return rows

    @pytest.mark.parametrize("groups", [1, 2, 4])
    def test_nics_of_the_other_half_of_a_host(self, groups: int, make_store: Make) -> None:
        """Of a job that shows only communicators of parts, no log tells the ranks in the job."""
        rows = self.through([2])
        for number, member in enumerate(rows["nccl_ranks"]):
            own = {"rank": number // groups, "nranks": 32 // groups}
            member.update(own, comm_id=f"0xabcdef0{number % groups}")
        (finding,) = diagnose(make_store(rows)).findings
        assert (finding.kind, finding.entities[0].host) == ("nic_affinity", "node02")

    def test_two_kinds_of_hosts_are_not_odd(self, make_store: Make) -> None:
        assert diagnose(make_store(self.through([2, 3]))).findings == ()

    def test_a_version_of_its_own_is_told_and_no_more(self, make_store: Make) -> None:
        rows = records(quiet()) | nccl(version=(range(8), "2.27.3"))
        (finding,) = diagnose(make_store(rows)).findings
        assert (finding.kind, finding.severity) == ("config_mismatch", "low")
        assert finding.loss_share is None
        assert "(3 of 4 hosts: 2.28.9)" in finding.explanation


def test_a_nic_no_rule_names_is_shown_as_information(make_store: Make) -> None:
    rows = records(quiet())
    rows["port_samples"] = [
        {
            "file_id": "p",
            "device": f"node{nic // 8:02d}",
            "port": f"mlx5_{nic % 8}/1",
            "format": "x",
            "ts": START + timedelta(seconds=30 * sample),
            "ts_source": "inline",
            "rx_bytes": sample * 10**12,
            "tx_bytes": sample * 10**12,
            "np_cnp_sent": sample * (90_000 if nic == 13 else 300),
        }
        for nic in range(32)
        for sample in range(4)
    ]
    found = diagnose(make_store(rows))
    (finding,) = of_kind(found, "outlier")
    assert finding.severity == "info"
    assert (finding.entities[0].host, finding.entities[0].nic) == ("node01", "mlx5_5")
    assert finding.drivers[0].feature == "congestion notifications sent"
    assert finding.drivers[0].value == pytest.approx(3000)


@pytest.mark.parametrize("seed", range(6))
def test_a_rank_of_which_two_logs_tell_is_judged_by_what_both_tell(
    seed: int, make_store: Make
) -> None:
    """Beside the records of each rank rank 0 has the trainer's log, and others may have one too."""
    chance = np.random.default_rng(seed)
    slow, begin = int(chance.choice([0, 0, 5, 31])), 60
    compute = quiet(seed=seed)
    compute[begin:, slow] *= 1.15
    rows = records(compute)
    told = {0, slow} if seed % 2 else set(range(32))
    # Its lines may come before or after those of the record, with a time of the whole step or none.
    late, timed, named = (bool(chance.integers(2)) for _ in range(3))
    rows["steps"] += [
        {
            "file_id": "trainer",
            "line": row["step"],
            "step": row["step"],
            "rank": row["rank"],
            "host": row["host"] if named else None,
            "ts": row["ts"] + timedelta(milliseconds=1 if late else -1),
            "step_time_ms": row["step_time_ms"] if timed else None,
        }
        for row in rows["steps"]
        if row["rank"] in told
    ]
    found = diagnose(make_store(rows))
    (finding,) = [f for f in found.findings if f.severity != "info"]
    assert (finding.kind, finding.entities[0].rank) == ("straggler", slow)
    assert abs((finding.start_step or 0) - begin) <= 3


@pytest.mark.parametrize("missing", [[0], [31], [7, 8, 9], list(range(8, 32))])
def test_ranks_without_a_record_are_not_called_ok(missing: list[int], make_store: Make) -> None:
    rows = records(quiet())
    kept = [row for row in rows["steps"] if row["rank"] not in missing]
    found = diagnose(make_store({**nccl(), "steps": kept}))
    (answer,) = [q for q in found.verdict.questions if q.question == "Is a rank slow?"]
    assert answer.answer == "unknown"
    assert f"{32 - len(missing)} of 32 ranks" in answer.evidence


def told_by_records(seed: int, told: str, *, late: float, waits: bool = True) -> tuple[Rows, int]:
    """Records, of a part of the step, of 16 to 64 ranks of which one is late from a step on.

    With `waits` communication includes the wait for the last rank, else it is the transfer alone.
    """
    draw = np.random.default_rng([seed, 77])
    ranks, steps = int(draw.choice([16, 32, 64])), int(draw.integers(100, 220))
    slow, onset = int(draw.integers(ranks)), int(draw.integers(30, steps - 50))
    usual = float(draw.uniform(400, 3000))
    compute = usual * draw.normal(1, draw.uniform(0.004, 0.012), (steps, ranks))
    compute[onset:, slow] += late * usual
    transfer = usual * draw.uniform(0.1, 0.3) * draw.normal(1, 0.004, steps)
    step_ms = compute.max(axis=1) + transfer
    arrived = transfer[:, None] * draw.normal(1, 0.01, (steps, ranks))
    comm = arrived + (compute.max(axis=1)[:, None] - compute if waits else 0)
    backward = compute * 0.6 + (comm if told.endswith("with the wait") else 0)
    columns = {
        "comm": {"comm_ms": comm},
        "compute": {"compute_ms": compute},
        "parts": {
            "forward_ms": compute * 0.3,
            "backward_ms": backward,
            "optimizer_ms": compute * 0.1,
        },
    }
    columns["backward with the wait"] = columns["parts"]
    columns["one part"] = {
        "forward_backward_ms": compute * 0.3 + backward,
        "optimizer_ms": compute * 0.1,
    }
    columns["one part with the wait"] = columns["one part"]
    return step_rows(step_ms, columns[told]), slow


class TestRecordsThatTellAPartOfTheStep:
    @pytest.mark.parametrize("told", ["comm", "compute", "parts", "one part"])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_late_rank_is_named(self, make_store: Make, seed: int, told: str) -> None:
        rows, slow = told_by_records(seed, told, late=0.1 + 0.07 * seed)
        (finding,) = diagnose(make_store(rows)).findings
        assert (finding.kind, finding.entities[0].rank) == ("straggler", slow)
        assert ("needs" in finding.title) == (told == "comm")

    @pytest.mark.parametrize("told", ["comm", "compute", "parts", "one part"])
    @pytest.mark.parametrize("seed", range(3))
    def test_of_healthy_ranks_none_is_named(self, make_store: Make, seed: int, told: str) -> None:
        rows, _ = told_by_records(seed, told, late=0)
        diagnosis = diagnose(make_store(rows))
        assert not diagnosis.findings
        assert diagnosis.verdict.questions[1].answer == "ok"

    @pytest.mark.parametrize("late", [0.0, 0.25])
    @pytest.mark.parametrize("seed", range(3))
    def test_times_without_the_wait_tell_nothing_of_ranks(
        self, make_store: Make, seed: int, late: float
    ) -> None:
        """All ranks show the same then, whoever is late: neither a culprit nor an `ok`."""
        for told, waits in (
            ("comm", False),
            ("backward with the wait", True),
            ("one part with the wait", True),
        ):
            rows, _ = told_by_records(seed, told, late=late, waits=waits)
            diagnosis = diagnose(make_store(rows))
            assert diagnosis.verdict.questions[1].answer == "unknown"
            assert not [f for f in diagnosis.findings if f.entities]

    @pytest.mark.parametrize("seed", range(3))
    def test_slower_transfers_are_no_rank_s(self, make_store: Make, seed: int) -> None:
        rows, _ = told_by_records(seed, "comm", late=0)
        half = max(row["step"] for row in rows["steps"]) // 2
        for row in rows["steps"]:
            if row["step"] > half:
                longer = row["comm_ms"]
                row["step_time_ms"] += longer
                row["comm_ms"] += longer
        (finding,) = diagnose(make_store(rows)).findings
        assert finding.kind == "throughput_drop"
        assert "longer collectives" in finding.explanation
