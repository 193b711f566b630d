"""The report for a ticket, and every form the command line writes."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from report_case import EVIL, evil_diagnosis

from conftest import Run
from fabricobs.diagnosis.findings import Diagnosis, Verdict
from fabricobs.report.ticket import plain, ticket_text

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ticket() -> str:
    files = [
        {"format": "megatron", "files": 1, "lines": 9, "parsed": 8, "ignored": 1, "unread": 0},
        {"format": "", "files": 1, "lines": 1234, "parsed": 0, "ignored": 0, "unread": 1234},
    ]
    return ticket_text(evil_diagnosis(), files, {1: "charts/finding-1.png"})


def test_a_ticket_says_what_the_page_says(ticket: str) -> None:
    found = evil_diagnosis()
    assert ticket.startswith(f"# {plain(found.verdict.sentence)}\n")
    for number, finding in enumerate(found.findings, start=1):
        assert f"## {number}. {plain(finding.title)}" in ticket
        assert plain(finding.explanation) in ticket
    assert ticket.count("- [ ] Look at") == 3
    assert ticket.count(": `show it -x`, `top`.\n") == 3
    assert "| **unknown** | No logs. To answer this, provide: NCCL\\_DEBUG" not in ticket
    assert "| **unknown** | No logs. To answer this, provide: NCCL_DEBUG=INFO logs. |" in ticket
    assert "| computation per step | 900 ms | 608 ms | \\> 638.4 ms |" in ticket
    assert "![Chart of finding 1](charts/finding-1.png)" in ticket
    assert "```sql\nSELECT 1 AS raw\n```" in ticket
    assert "2 ports rx_errors: reset, 3 times, first 2026-03-02 09:01:00 UTC" in ticket
    assert "- 1.25 times the throughput with" in ticket
    assert "| not recognised | 1 | 1,234 | 0 | 0 | 1,234 |" in ticket


def test_text_of_a_log_is_no_markup(ticket: str) -> None:
    assert EVIL not in ticket
    assert "\\<script\\>alert(1)\\</script\\>" in ticket
    assert not re.search(r"(?<!\\)<(?!/?(details|summary)>)", ticket)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# a | b", "\\# a \\| b"),
        ("![x](http://y)", "\\!\\[x\\](http://y)"),
        ("mlx5_0 and _x_", "mlx5_0 and \\_x\\_"),
        ("one\ntwo\x1b[2J", "one two\\\\x1b\\[2J"),
        ("`rm`", "\\`rm\\`"),
    ],
)
def test_what_would_be_markup_is_escaped(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_ticket_without_findings_says_so() -> None:
    assert "No findings." in ticket_text(Diagnosis(Verdict("Fine.", (), True), ()))
    assert "too little to judge" in ticket_text(Diagnosis(Verdict("No.", (), False), ()))


def test_a_ticket_of_many_findings_says_how_many_it_leaves_out() -> None:
    found = evil_diagnosis()
    text = ticket_text(replace(found, findings=found.findings * 10))
    assert "10 more findings are left out here." in text


def test_the_command_line_writes_every_form(
    fabricobs: Run, sample_store: Path, tmp_path: Path
) -> None:
    for name, begin in (("r.md", "# leaf01 sends"), ("r.txt", "leaf01 sends"), ("r.json", "{")):
        out = tmp_path / name
        done = fabricobs("report", "--store", str(sample_store), "--out", str(out))
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [str(out)]
        assert out.read_text(encoding="utf-8").startswith(begin)
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["schema_version"] == 1


def test_the_charts_are_written_beside_and_linked(
    fabricobs: Run, sample_store: Path, tmp_path: Path
) -> None:
    out, charts = tmp_path / "ticket.md", tmp_path / "charts"
    done = fabricobs(
        "report", "--store", str(sample_store), "--out", str(out), "--charts", str(charts)
    )
    assert done.returncode == 0, done.stderr
    names = {path.name for path in charts.iterdir()}
    assert {"step-time.png", "topology.svg", "finding-1-uplink-shares.png"} <= names
    assert "](charts/finding-1-uplink-shares.png)" in out.read_text(encoding="utf-8")
    assert set(done.stdout.splitlines()) == {str(out), *(str(charts / name) for name in names)}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--out", "report.pdf"], "no ending of .html, .md, .txt, .json"),
        (["--format", "pdf"], "use one of html, markdown, text, json"),
    ],
)
def test_an_unknown_form_says_which_there_are(
    fabricobs: Run, sample_store: Path, options: list[str], said: str
) -> None:
    done = fabricobs("report", "--store", str(sample_store), *options)
    assert done.returncode == 3
    assert said in done.stderr
