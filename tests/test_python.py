"""The store in Python: what `fabricobs.open` gives, and that importing costs nothing."""

import dataclasses
import inspect
import pydoc
import re
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

import fabricobs
from fabricobs.api import OpenStore
from fabricobs.diagnosis.change import Change, Drift
from fabricobs.diagnosis.comparison import Comparison, Setting
from fabricobs.diagnosis.findings import (
    Clock,
    CounterBreak,
    Coverage,
    Diagnosis,
    Driver,
    Entity,
    Failure,
    Finding,
    JobVerdict,
    Loss,
    Power,
    Price,
    Question,
    Segment,
    Verdict,
    WhatIf,
)
from fabricobs.diagnosis.sides import Side
from fabricobs.inputs import FileOutcome, IngestReport, LeftOut
from fabricobs.operate.watch import Round
from fabricobs.report.charts.by_question import CHARTS, ChartError
from fabricobs.report.explanation import Explanation
from fabricobs.store.jobs import Run
from fabricobs.store.upkeep import Pruned
from fabricobs.store.verification import Batch


@pytest.fixture(scope="module")
def opened(sample_store: Path) -> OpenStore:
    return fabricobs.open(sample_store)


FUNCTIONS = {
    **{name: getattr(fabricobs, name) for name in ("ingest", "open", "simulate", "watch")},
    **{
        f"OpenStore.{name}": member
        for name, member in vars(OpenStore).items()
        if not name.startswith("_") and inspect.isfunction(member)
    },
}
# What functions return, and what that is made of.
TYPES = (
    OpenStore, IngestReport, FileOutcome, LeftOut, Run, Diagnosis, Verdict, Question, Power,
    Finding, Entity, Driver, Segment, WhatIf, Loss, Price, Coverage, Clock, CounterBreak, Failure,
    JobVerdict, Explanation, Comparison, Side, Change, Setting, Drift, Batch, Pruned, Round,
)  # fmt: skip


def test_every_public_name_is_tested_here() -> None:
    assert {name for name in fabricobs.__all__ if name.islower()} - {"__version__"} == {
        name for name in FUNCTIONS if "." not in name
    }


def test_help_of_the_package_shows_what_is_imported_later() -> None:
    told = pydoc.plain(pydoc.render_doc(fabricobs))
    # `open` is shown as what it is called where it is written.
    assert all(f"\n    {name}" in told for name in ("ingest(", "open = open_store(", "watch("))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_says_what_goes_in_and_what_comes_out(name: str) -> None:
    function = FUNCTIONS[name]
    told = inspect.getdoc(function) or ""
    assert told.split("\n")[0].endswith("."), "one sentence first"
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in list(signature.parameters.values()):
        if parameter.name == "self":
            continue
        assert parameter.annotation is not inspect.Parameter.empty, parameter.name
        assert re.search(rf"`{parameter.name}\b", told), f"{parameter.name} is not explained"


@pytest.mark.parametrize("type_", TYPES)
def test_help_says_what_a_type_holds(type_: type) -> None:
    told = inspect.getdoc(type_) or ""
    assert told
    assert not told.startswith(f"{type_.__name__}("), "a sentence, not what dataclass writes"
    assert dataclasses.is_dataclass(type_)
    for name, member in vars(type_).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            assert inspect.getdoc(member), name


def test_importing_loads_no_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import fabricobs; fabricobs.open\n"
        "print(sorted(name for name in set(sys.modules) - before if name.startswith("
        "('duckdb', 'polars', 'pyarrow', 'numpy', 'altair', 'typer', 'pydantic'))))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_rows_come_as_frames(opened: OpenStore) -> None:
    frame = opened.sql("SELECT host, count(*) AS n FROM job_ranks GROUP BY host ORDER BY host").pl()
    assert frame.rows() == [("node01", 8), ("node02", 8), ("node03", 8), ("node04", 8)]


def test_a_statement_takes_parameters(opened: OpenStore) -> None:
    named = opened.sql("SELECT max(step) FROM step_times WHERE step < $n", {"n": 50})
    assert named.fetchall() == [(49,)]
    assert opened.sql("SELECT ? + 1", [datetime(2026, 3, 2).day]).fetchall() == [(3,)]


def test_questions_by_name(opened: OpenStore) -> None:
    assert "uplink_balance" in opened.queries()
    groups = opened.query("uplink_balance").pl()["uplink_group"].unique()
    assert "leaf01 uplinks" in groups.to_list()


def test_tables_and_views_with_their_columns(opened: OpenStore) -> None:
    tables = opened.tables()
    assert "step_time_ms" in tables["steps"]
    assert "pure_us" in tables["collective_calls"]


def test_the_store_is_judged(opened: OpenStore) -> None:
    (finding,) = opened.findings()
    assert (finding.kind, finding.entities[0].switch) == ("ecmp_skew", "leaf01")
    title = opened.chart("uplink_balance", finding).to_dict()["title"]["text"]
    assert "leaf01" in title


def test_logs_are_read_into_a_store(tmp_path: Path) -> None:
    log = tmp_path / "steps.jsonl"
    log.write_text('{"step": 1, "rank": 0, "step_time_ms": 250.0, "host": "node01"}\n')
    read = fabricobs.ingest(log, tmp_path / "store", job="pretrain")
    assert [outcome.rows for outcome in read.read] == [1]
    (run,) = fabricobs.open(tmp_path / "store").jobs()
    assert run.name == "pretrain"
    again = fabricobs.ingest([log], tmp_path / "store", job="pretrain")
    assert [outcome.unchanged for outcome in again.outcomes] == [True]


def test_a_finding_is_explained_with_its_rows(opened: OpenStore) -> None:
    (finding,) = opened.findings()
    explained = opened.explain(finding.id[:4], anew=True)
    assert explained.finding.id == finding.id
    assert explained.about is not None
    assert set(explained.about["uplink_group"].str.split(" ").list.first()) == {"leaf01"}
    assert finding.title in " ".join(str(explained).split())


def test_a_report_is_written(opened: OpenStore, tmp_path: Path) -> None:
    (written,) = opened.report(tmp_path / "report.md", window="1h")
    assert "leaf01" in written.read_text()


def test_a_round_of_the_watch(tmp_path: Path) -> None:
    (tmp_path / "steps.jsonl").write_text('{"step": 1, "rank": 0, "step_time_ms": 250.0}\n')
    notes: list[str] = []
    logs = [tmp_path / "steps.jsonl"]
    (done,) = fabricobs.watch(logs, tmp_path / "store", once=True, say=notes.append)
    assert done.diagnosis is not None
    assert "1 files read" in notes[-1]


def test_a_cluster_is_simulated(tmp_path: Path) -> None:
    (case,) = fabricobs.simulate(tmp_path / "cases", ["healthy"], gpus=16, only=["nccl"])
    assert case == tmp_path / "cases" / "healthy"
    assert (case / "truth.json").is_file()


def test_what_a_store_is_kept_with(sample_store: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_store, tmp_path / "store")
    opened = fabricobs.open(tmp_path / "store")
    assert opened.prune() is None
    pruned = opened.prune("30d")
    assert pruned is not None
    assert pruned.files == 0
    assert opened.compact() == 0
    assert not any(batch.faults for batch in opened.verify())


def test_two_sides_are_compared(opened: OpenStore) -> None:
    step_time = opened.compare("steps:11..100", "steps:200..300").step_time
    assert step_time is not None
    assert step_time.answer == "higher"


@pytest.mark.slow
@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_drawn_without_a_finding(opened: OpenStore, name: str) -> None:
    drawn = opened.chart(name).to_dict()
    assert drawn["layer"]
    assert drawn["width"] > 0


def test_a_chart_is_of_the_switch_asked_for(opened: OpenStore) -> None:
    title = opened.chart("uplink_balance", switch="leaf02").to_dict()["title"]["text"]
    assert "leaf02" in title
    with pytest.raises(ChartError, match="no data"):
        opened.chart("uplink_balance", switch="leaf99")


def test_every_chart_is_a_question(opened: OpenStore) -> None:
    assert set(opened.charts()) <= opened.queries().keys()


def test_a_store_of_ones_own_questions(sample_store: Path, tmp_path: Path) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "mine.sql").write_text("-- question: One?\nSELECT 1 AS one")
    assert fabricobs.open(sample_store, [tmp_path]).query("mine").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda s: s.sql("DELETE FROM steps"), "read-only"),
        (lambda s: s.sql("SELECT * FROM stepz"), "stepz"),
        (lambda s: s.query("uplink_balanc"), "did you mean uplink_balance"),
        (lambda s: s.sql("SELECT * FROM setps"), "did you mean steps"),
        (lambda s: s.chart("uplink_balanc"), "did you mean 'uplink_balance'"),
        (lambda s: s.chart("incidents"), "one of"),
        (lambda s: s.compare("steps:1..2", "steps:2..3"), "overlap"),
        (lambda s: fabricobs.open(s.path / "nowhere"), "no store here"),
        (lambda s: s.diagnose(window="often"), "no duration"),
        (lambda s: s.diagnose(job="nobody"), "nobody"),
        (lambda s: s.report("report.xyz"), "no ending of"),
        (lambda s: fabricobs.ingest("nowhere", s.path), "no such file"),
        (lambda s: fabricobs.watch(["nowhere"], s.path), "no such file"),
        (lambda s: fabricobs.simulate("cases", ["helthy"]), "helthy"),
    ],
)
def test_a_mistake_says_what_to_do(opened: OpenStore, mistake: object, said: str) -> None:
    with pytest.raises(fabricobs.UserError, match=said):
        mistake(opened)  # type: ignore[operator]
