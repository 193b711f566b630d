"""What is found, what is left alone, and what cannot be told."""

import json
import re
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from conftest import ROOT, Rows
from fabricobs.diagnosis.findings import SEVERITIES, Diagnosis, confidence_of, severity_of_loss
from fabricobs.diagnosis.run import diagnose
from fabricobs.diagnosis.verdict import QUESTIONS
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.simulator.cases import write_case
from fabricobs.simulator.scenarios import load_scenario
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 2, 9)
Make = Callable[[Rows], Path]


def at_least(diagnosis: Diagnosis, severity: str) -> list[str]:
    least = SEVERITIES.index(severity)  # type: ignore[arg-type]
    return [f.kind for f in diagnosis.findings if SEVERITIES.index(f.severity) >= least]


def answers(diagnosis: Diagnosis) -> list[str]:
    return [question.answer for question in diagnosis.verdict.questions]


def run_of(
    slow: dict[int, float], *, ranks: int = 16, steps: int = 200, since: int = 100, seed: int = 1
) -> Rows:
    """Per-rank steps of a data-parallel job; `slow` ranks compute longer from `since` on."""
    chance = np.random.default_rng(seed)
    rows = []
    now = START
    for step in range(1, steps + 1):
        compute = chance.normal(700, 3, ranks)
        for rank, factor in slow.items():
            compute[rank] *= factor if step >= since else 1
        transfer = chance.normal(200, 3)
        step_ms = compute.max() + transfer + 10
        now += timedelta(milliseconds=float(step_ms))
        for rank in range(ranks):
            rows.append(
                {
                    "file_id": "f",
                    "line": len(rows) + 1,
                    "step": step,
                    "rank": rank,
                    "host": f"node{rank // 8:02d}",
                    "ts": now,
                    "step_time_ms": float(step_ms),
                    "compute_ms": float(compute[rank]),
                    "comm_ms": float(compute.max() - compute[rank] + transfer),
                }
            )
    return {"steps": rows}


@pytest.fixture(scope="session")
def found(sample_store: Path) -> Diagnosis:
    return diagnose(sample_store)


class TestSample:
    def test_the_skewed_leaf_is_the_only_finding(self, found: Diagnosis) -> None:
        (answer,) = json.loads((ROOT / "sample_data" / "truth.json").read_text())["faults"]
        assert at_least(found, "low") == [answer["kind"]]
        top = found.findings[0]
        assert top.entities[0].switch == answer["culprits"][0]["switch"]
        assert top.start_step == pytest.approx(answer["start_step"], abs=2)
        assert top.loss_share == pytest.approx(answer["loss_share"], rel=0.1)
        even = {f"Ethernet{number}" for number in (64, 80, 96, 112)}
        assert {e.port for e in top.related if e.type == "port"} == even
        assert [e.as_dict() for e in top.related if e.type == "host"] == answer["victims"]

    def test_the_answers(self, found: Diagnosis) -> None:
        assert answers(found) == ["problem", "ok", "ok", "problem", "ok", "ok", "ok", "unknown"]
        assert "leaf01" in found.verdict.sentence

    def test_a_rerun_gives_the_same_finding(self, found: Diagnosis, sample_store: Path) -> None:
        assert [f.id for f in diagnose(sample_store).findings] == [f.id for f in found.findings]


def test_hosts_match_on_their_short_name(tmp_path: Path) -> None:
    logs = Path(shutil.copytree(ROOT / "sample_data" / "logs", tmp_path / "logs"))
    domain = ".cluster.local"
    for table in (logs / "switches").rglob("show_lldp_table.txt"):
        widened = []
        for line in table.read_text().splitlines():
            filler = ("-" if set(line) <= {"-", " "} else " ") * len(domain)
            longer, hosts = re.subn(r"(node0\d)", rf"\1{domain}", line)
            widened.append(longer if hosts else line[:25] + filler + line[25:])
        table.write_text("\n".join(widened) + "\n")
    ingest([logs], Store(tmp_path / "s"), Options())
    asked = "SELECT DISTINCT remote_device FROM links"
    found = open_session(tmp_path / "s", asked).sql(asked).fetchall()
    assert ("node01.cluster.local",) in found
    assert at_least(diagnose(tmp_path / "s"), "low") == ["ecmp_skew"]


def simulated(name: str, seed: int, directory: Path, gpus: int | None = None) -> Diagnosis:
    """The diagnosis of a simulated case."""
    write_case(directory / "case", load_scenario(name).sized(gpus), seed=seed)
    ingest([directory / "case" / "logs"], Store(directory / "s"), Options())
    return diagnose(directory / "s")


# Seeds that no threshold was chosen on.
@pytest.mark.parametrize(
    ("name", "seed"), [("healthy", 7901), ("healthy_static", 7902), ("healthy_rail", 7903)]
)
def test_a_healthy_run_gives_no_finding(tmp_path: Path, name: str, seed: int) -> None:
    found = simulated(name, seed, tmp_path, gpus=64)
    assert at_least(found, "low") == []
    assert set(answers(found)) <= {"ok", "unknown"}


@pytest.mark.parametrize(
    ("without", "kept"),
    [("switches", "throughput_drop"), ("steps", "ecmp_skew"), ("nccl", "ecmp_skew")],
)
def test_less_evidence_never_turns_a_fault_into_ok(tmp_path: Path, without: str, kept: str) -> None:
    logs = ROOT / "sample_data" / "logs"
    inputs = [folder for folder in sorted(logs.iterdir()) if folder.name != without]
    ingest(inputs, Store(tmp_path / "s"), Options())
    found = diagnose(tmp_path / "s")
    assert found.findings[0].kind == kept
    assert answers(found)[0] == "problem"


def test_a_slow_rank_is_named_and_its_cost(make_store: Make) -> None:
    found = diagnose(make_store(run_of({5: 1.15})))
    (finding,) = found.findings
    assert (finding.kind, finding.entities[0].rank, finding.entities[0].host) == (
        "straggler",
        5,
        "node00",
    )
    assert finding.start_step == pytest.approx(100, abs=2)
    assert finding.loss_share == pytest.approx(1 - 910 / 1015, abs=0.01)
    assert answers(found)[1] == "problem"


def test_a_slow_host_is_one_finding_not_eight(make_store: Make) -> None:
    found = diagnose(make_store(run_of(dict.fromkeys(range(8, 16), 1.2), ranks=32)))
    (finding,) = found.findings
    assert finding.entities[0].type == "host"
    assert finding.entities[0].host == "node01"
    assert len(finding.related) == 8


def test_a_slow_rank_from_the_start_is_found_by_its_peers(make_store: Make) -> None:
    (finding,) = diagnose(make_store(run_of({3: 1.3}, since=0))).findings
    assert finding.entities[0].rank == 3
    assert finding.severity in {"high", "critical"}


@pytest.mark.parametrize("seed", range(5))
def test_ranks_alike_are_not_accused(make_store: Make, seed: int) -> None:
    found = diagnose(make_store(run_of({}, seed=seed)))
    assert found.findings == ()
    assert answers(found)[:2] == ["ok", "ok"]


def test_a_long_stage_is_no_straggler(make_store: Make) -> None:
    rows = run_of(dict.fromkeys(range(12, 16), 1.3), since=0)
    for row in rows["steps"]:
        row["stage"] = int(row["rank"]) // 4  # type: ignore[call-overload]
    assert "straggler" not in [f.kind for f in diagnose(make_store(rows)).findings]


def test_half_the_ranks_slow_is_not_called_alike(make_store: Make) -> None:
    rows = run_of(dict.fromkeys(range(8), 1.3), since=1)
    found = diagnose(make_store(rows))
    assert answers(found)[1] == "problem"
    # Nothing but numbers says which half is the sound one: no more than medium.
    assert [(f.entities[0].host, f.severity) for f in found.findings] == [("node00", "medium")]


def test_all_ranks_slower_than_before_is_not_called_ok(make_store: Make) -> None:
    rows = run_of(dict.fromkeys(range(16), 1.3))
    diagnosis = diagnose(make_store(rows))
    assert answers(diagnosis)[:2] == ["unknown", "unknown"]
    assert at_least(diagnosis, "low") == ["throughput_drop"]


def test_a_job_that_became_faster_did_not_hold_its_pace(make_store: Make) -> None:
    rows = run_of({})
    for row in rows["steps"]:
        row["step_time_ms"] *= 1.3 if row["step"] < 100 else 1.0  # type: ignore[operator]
    question = diagnose(make_store(rows)).verdict.questions[0]
    assert question.answer == "unknown"
    assert "faster at step 10" in question.evidence or "faster at step 9" in question.evidence


def test_ten_steps_tell_nothing(make_store: Make) -> None:
    assert answers(diagnose(make_store(run_of({}, steps=20))))[:2] == ["unknown", "unknown"]


def test_records_of_half_the_job_do_not_split_a_loss(make_store: Make) -> None:
    rows = run_of({})
    for row in rows["steps"]:
        row["step_time_ms"] *= 1.3 if row["step"] >= 100 else 1.0  # type: ignore[operator]
    rows["nccl_ranks"] = [
        {"file_id": "g", "host": "node00", "pid": 1, "rank": 0, "nranks": 32, "comm": "0x1"}
    ]
    (finding,) = diagnose(make_store(rows)).findings
    assert "No per-rank records tell" in finding.explanation


def trainer_log(first: int, last: int = 200, *, tokens: bool) -> Rows:
    """Steps of a job alone, a quarter longer between two of them."""
    rows = []
    for step in range(1, 201):
        time = 1000.0 + (step % 7) + (250 if first <= step <= last else 0)
        row = {"file_id": "f", "line": step, "step": step, "step_time_ms": time}
        rows.append(row | {"ts": START + timedelta(seconds=step)})
        if tokens:
            rows[-1]["tokens_per_second"] = 4e6 / time
    return {"steps": rows}


def test_a_loss_nobody_explains_is_told(make_store: Make) -> None:
    found = diagnose(make_store(trainer_log(120, tokens=True)))
    (finding,) = found.findings
    assert (finding.kind, finding.start_step) == ("throughput_drop", 120)
    assert (finding.severity, finding.loss_share) == ("high", pytest.approx(0.2, abs=0.01))
    assert answers(found) == ["problem"] + ["unknown"] * (len(QUESTIONS) - 1)


def test_longer_steps_of_unknown_work_are_a_lead(make_store: Make) -> None:
    found = diagnose(make_store(trainer_log(120, tokens=False)))
    (finding,) = found.findings
    assert (finding.severity, finding.loss_share) == ("low", None)
    assert finding.title.endswith("and no log tells whether each does more work")
    assert answers(found) == ["unknown"] * len(QUESTIONS)
    assert "tokens a second" in found.verdict.questions[0].settled_by


def test_a_short_loss_that_is_over_weighs_as_much_as_the_run_lost(make_store: Make) -> None:
    (finding,) = diagnose(make_store(trainer_log(100, 115, tokens=True))).findings
    assert finding.loss_share == pytest.approx(0.2, abs=0.01)
    assert finding.severity == "info"


@pytest.mark.parametrize(("last", "severity"), [(55, "low"), (70, "low"), (100, "medium")])
def test_a_rank_that_was_slow_for_a_while_weighs_as_much_as_the_run_lost(
    make_store: Make, last: int, severity: str
) -> None:
    slow, well = (run_of(ranks, steps=300, since=40)["steps"] for ranks in ({5: 1.6}, {}))
    rows = [*slow[: last * 16], *well[last * 16 :]]
    (finding,) = diagnose(make_store({"steps": rows})).findings
    assert finding.loss_share == pytest.approx(420 / 1330, abs=0.03)
    assert finding.severity == severity


def test_what_no_rule_names_is_shown_as_information(make_store: Make) -> None:
    rows = run_of({})
    for row in rows["steps"]:
        row["data_ms"] = 90.0 if row["rank"] == 9 else 10.0 + int(row["step"]) % 3  # type: ignore[call-overload]
    found = diagnose(make_store(rows))
    (finding,) = found.findings
    assert (finding.kind, finding.severity, finding.entities[0].rank) == ("outlier", "info", 9)
    assert finding.drivers[0].feature == "waiting for data"
    assert found.worst_severity is None
    assert answers(found)[0] == "ok"


def test_an_empty_store_cannot_tell(make_store: Make) -> None:
    found = diagnose(make_store({}))
    assert answers(found) == ["unknown"] * len(QUESTIONS)
    assert not found.verdict.judged
    assert len(found.coverage.missing) == 6


def test_two_jobs_are_judged_apart(make_store: Make) -> None:
    slow, well = run_of({2: 1.2}), run_of({}, seed=3)
    for name, rows in (("slow", slow), ("well", well)):
        for row in rows["steps"]:
            row["job"] = name
    (finding,) = diagnose(make_store({"steps": slow["steps"] + well["steps"]})).findings
    assert (finding.entities[0].rank, finding.entities[0].job) == (2, "slow")


@pytest.mark.parametrize(
    ("loss", "severity"),
    [
        (None, "info"),
        (0.01, "info"),
        (0.03, "low"),
        (0.07, "medium"),
        (0.15, "high"),
        (0.3, "critical"),
    ],
)
def test_severity_follows_the_loss(loss: float | None, severity: str) -> None:
    assert severity_of_loss(loss) == severity


def test_confidence_grows_with_independent_evidence() -> None:
    assert confidence_of({"timing"}) == 0.5
    assert confidence_of({"timing", "counters"}) == 0.75
