"""A part of a diagnosis that fails is told, and the other parts are done."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fabricobs.cli.options import exit_code
from fabricobs.diagnosis.methods import METHODS
from fabricobs.diagnosis.run import diagnose
from fabricobs.report.documents import diagnosis_json
from fabricobs.report.page import write_page
from fabricobs.report.terminal import diagnosis_text
from fabricobs.report.writing import Report, write_report


def _fail(*_: object) -> None:
    raise ZeroDivisionError("a rank of no peers")


def test_a_failing_method_makes_its_question_unknown(
    sample_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = diagnose(sample_store)
    monkeypatch.setitem(METHODS, "straggler", _fail)
    monkeypatch.setattr("fabricobs.diagnosis.verdict.nccl_choice", _fail)
    monkeypatch.setattr("fabricobs.report.figures.step_timeline", _fail)
    found = diagnose(sample_store)
    others = [f.id for f in sound.findings if f.kind != "straggler"]
    assert [f.id for f in found.findings if f.id in others] == others
    answers = {q.question: q for q in found.verdict.questions}
    for title, part in (
        ("Is a rank slow?", "diagnosis straggler"),
        ("Did NCCL choose well?", "answer to 'Did NCCL choose well?'"),
    ):
        assert answers[title].answer == "unknown"
        assert part in answers[title].evidence
        assert "ZeroDivisionError" in answers[title].evidence
    assert "diagnosis straggler: unexpected ZeroDivisionError" in diagnosis_text(found)
    parts = [failure["part"] for failure in json.loads(diagnosis_json(found))["failures"]]
    assert parts == ["diagnosis straggler", "answer to 'Did NCCL choose well?'"]
    write_page(found, sample_store, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "diagnosis straggler" in page
    assert "chart of the step times: unexpected ZeroDivisionError" in page
    assert exit_code(replace(found, findings=()), "critical") == 3


def test_a_chart_that_fails_is_told_in_markdown_and_has_no_image(
    sample_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabricobs.report.figures.step_timeline", _fail)
    monkeypatch.setattr("fabricobs.report.figures.vl_convert.vegalite_to_png", _fail)
    out = tmp_path / "report.md"
    written = write_report(
        Report(out, "markdown", tmp_path / "charts"), diagnose(sample_store), sample_store
    )
    assert written == [out]
    text = out.read_text(encoding="utf-8")
    assert "chart of the step times: unexpected ZeroDivisionError" in text
    assert "picture finding-1-" in text
    assert "![" not in text


def test_an_unexpected_error_exits_with_70_and_no_traceback(sample_store: Path) -> None:
    fails = "querying.stored_queries = lambda *_: 1 / 0"
    program = f"from fabricobs import cli, querying\n{fails}\ncli.main()\n"
    command = [sys.executable, "-c", program, "query", "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert "unexpected ZeroDivisionError" in done.stderr
    assert "please report it" in done.stderr
    assert len(done.stderr.splitlines()) == 1
