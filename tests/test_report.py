"""The report: what it says as JSON, text and page; and that no text of a log becomes markup."""

import base64
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fabricobs import content
from fabricobs.diagnosis.findings import (
    Coverage,
    Diagnosis,
    Driver,
    Entity,
    Finding,
    Question,
    Segment,
    Verdict,
)
from fabricobs.report import documents
from fabricobs.report.page import write_page
from fabricobs.report.terminal import diagnosis_text
from fabricobs.store.arrow import table_schema
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

CHROMIUM = "/usr/bin/chromium"
EVIL = "<script>alert(1)</script>"
LEAF, SPINE, JOB = f"leaf{EVIL}", "spine01", f"job{EVIL}"
START = datetime(2026, 3, 2, 9, 0)
STEPS, RANKS, LINKS, MINUTES = 120, 16, 4, 12
FAULT_STEP = 60

Row = dict[str, Any]


def host(rank: int) -> str:
    return f"node{rank // 8}{EVIL}"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def step_rows() -> list[Row]:
    return [
        {
            "job": JOB,
            "ts": at(5 * step),
            "step": step,
            "rank": rank,
            "host": host(rank),
            "step_time_ms": 1500.0 if step >= FAULT_STEP else 1000.0,
            "compute_ms": 900.0 if rank == 3 and step >= FAULT_STEP else 600.0 + rank,
        }
        for step in range(STEPS)
        for rank in range(RANKS)
    ]


def collective_rows() -> list[Row]:
    return [
        {
            "job": JOB,
            "ts": at(5 * seq),
            "comm_id": "c0",
            "rank": rank,
            "nranks": RANKS,
            "nodes": 2,
            "host": host(rank),
            "op": "AllReduce",
            "seq": seq,
            "bytes": 1 << 30,
            "duration_us": 40_000.0 + 100 * rank,
            "timing_source": "kernel_gpu",
        }
        for seq in range(STEPS)
        for rank in range(RANKS)
    ]


def port(link: int) -> str:
    return f"Ethernet{link}{EVIL}"


def sample_rows() -> list[Row]:
    share = [1, 1, 1, 1]
    sent = [0] * LINKS
    rows: list[Row] = []
    for minute in range(MINUTES):
        share = [2, 2, 0, 0] if minute > MINUTES // 2 else share
        for link in range(LINKS):
            sent[link] += share[link] * 10**10
            rows.append(
                {
                    "ts": at(60 * minute),
                    "device": LEAF,
                    "port": port(link),
                    "format": "f",
                    "tx_bytes": sent[link],
                }
            )
    return rows


def make_store(path: Path, **tables: list[Row]) -> Path:
    store = Store(path)
    store.create()
    parts = {
        name: pa.Table.from_pylist(rows, schema=table_schema(name)) for name, rows in tables.items()
    }
    store.append("x", parts)
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cables = [(port(link), SPINE) for link in range(LINKS)] + [("Ethernet99", host(0))]
    return make_store(
        tmp_path_factory.mktemp("report") / "store",
        steps=step_rows(),
        collectives=collective_rows(),
        port_samples=sample_rows(),
        links=[{"device": LEAF, "port": p, "remote_device": far} for p, far in cables],
        counter_info=[
            {
                "format": "f",
                "table_name": "port_samples",
                "counter": "tx_bytes",
                "width": 64,
                "overflow": "wrap",
                "kind": "counter",
            }
        ],
        files=[
            {"file_id": "1", "formats": "megatron,capture", "lines": 9, "parsed": 9, "unparsed": 0},
            {"file_id": "2", "formats": "", "lines": 1234, "parsed": 0, "unparsed": 1234},
        ],
    )


def finding(kind: str, *entities: Entity, **rest: Any) -> Finding:
    return Finding(
        kind=kind,
        entities=entities,
        severity="high",
        confidence=0.75,
        title=f"{kind} of {EVIL}",
        explanation=f"An explanation with {EVIL} & more.",
        families=("timing", "counters"),
        start=at(5 * FAULT_STEP),
        end=at(5 * STEPS),
        start_step=FAULT_STEP,
        end_step=STEPS - 1,
        detected_at=at(400),
        loss_share=0.333,
        gpu_hours_lost=1.25,
        drivers=(
            Driver("computation per step", 900.0, 608.0, "ms", 12.5, 638.4, f"Source {EVIL}"),
            Driver("p of hashing", 1.3e-22, None, "", None, 0.001, "Monte Carlo"),
        ),
        query="SELECT 1 AS raw",
        refuted_by=(f"It moves {EVIL}.",),
        next_steps=(f"Look at {EVIL}.",),
        **rest,
    )


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    victims = tuple(Entity("host", host=f"node{number}") for number in range(9))
    ports = tuple(Entity("port", switch=LEAF, port=port(link)) for link in range(2))
    questions = (
        Question("Is a rank slow?", "problem", f"Rank 3 on {EVIL}."),
        Question("Is a link sick?", "ok", "No error counter rises."),
        Question("Did NCCL choose well?", "unknown", "No logs.", "NCCL_DEBUG=INFO logs."),
    )
    return Diagnosis(
        verdict=Verdict(f"Rank 3 on {EVIL} is slow.", questions, True),
        findings=(
            finding("straggler", Entity("rank", rank=3, host=host(3), job=JOB), related=victims),
            finding("ecmp_skew", Entity("switch", switch=LEAF), related=ports),
            finding("throughput_drop"),
        ),
        segments=(
            Segment(0, FAULT_STEP - 1, at(0), 1000.0),
            Segment(FAULT_STEP, STEPS - 1, at(5 * FAULT_STEP), 1500.0),
        ),
        coverage=Coverage((("files", "2"), ("hosts", EVIL)), (f"cables: {EVIL}",)),
    )


@pytest.fixture(scope="module")
def page(diagnosis: Diagnosis, store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_page(diagnosis, store, out)
    return out


class Reading(HTMLParser):
    """What a browser finds in the page: elements, scripts, text, the drawings in the charts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.drawn: dict[str, int] = {}
        self._chart = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.elements.append((tag, named))
        if tag == "script":
            self.scripts.append((named.get("type") or "", ""))
        if "chart" in (named.get("class") or "").split():
            self._chart = named["id"] or ""
            self.drawn[self._chart] = 0
        elif tag in {"svg", "canvas"}:
            self.drawn[self._chart] += 1

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script" and self.get_starttag_text():
            kind, before = self.scripts[-1]
            self.scripts[-1] = (kind, before + data)
        self.texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self.elements.append(("/script", {}))

    @property
    def specs(self) -> dict[str, Any]:
        (text,) = (text for kind, text in self.scripts if kind == "application/json")
        specs: dict[str, Any] = json.loads(text)
        return specs


@pytest.fixture(scope="module")
def reading(page: Path) -> Reading:
    return Reading(page.read_text(encoding="utf-8"))


def strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def test_json_has_the_fields_of_schema_version_1(diagnosis: Diagnosis) -> None:
    document = json.loads(documents.diagnosis_json(diagnosis))
    assert document["schema_version"] == 1
    assert set(document["verdict"]) == {"sentence", "judged", "questions"}
    assert [q["answer"] for q in document["verdict"]["questions"]] == ["problem", "ok", "unknown"]
    first = document["findings"][0]
    assert list(first) == [
        *("id", "kind", "severity", "confidence", "families", "entities", "related"),
        *("start", "end"),
        *("start_step", "end_step", "detected_at", "loss_share", "gpu_hours_lost", "cost"),
        "title",
        *("explanation", "drivers", "query", "sql", "refuted_by", "next_steps"),
    ]
    assert first["start"] == "2026-03-02T09:05:00.000Z"
    assert first["entities"] == [{"type": "rank", "job": JOB, "rank": 3, "host": host(3)}]
    assert first["sql"] == "SELECT 1 AS raw"
    assert set(first["drivers"][0]) == {
        *("feature", "value", "peer", "unit", "robust_z", "threshold", "source")
    }
    assert document["segments"][1]["step_time_ms"] == 1500.0
    assert document["coverage"] == {
        "facts": {"files": "2", "hosts": EVIL},
        "missing": [f"cables: {EVIL}"],
    }


def test_json_has_null_where_there_is_no_number(diagnosis: Diagnosis) -> None:
    odd = replace(diagnosis.findings[0], loss_share=float("nan"), gpu_hours_lost=float("inf"))
    document = json.loads(documents.diagnosis_json(replace(diagnosis, findings=(odd,))))
    assert document["findings"][0]["loss_share"] is None
    assert document["findings"][0]["gpu_hours_lost"] is None


def test_a_query_that_is_a_question_gives_its_sql(tmp_path: Path) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "mine.sql").write_text("-- question: Mine?\nSELECT 1\n")
    assert documents.question_sql("mine", (tmp_path,)).endswith("SELECT 1\n")
    assert documents.question_sql("SELECT 2") == "SELECT 2"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "ms", "-"),
        (float("nan"), "", "-"),
        (0.0, "", "0"),
        (0.5184, "", "0.5184"),
        (412.34, "ms", "412.3 ms"),
        (1234567.8, "bytes", "1,234,568 bytes"),
        (1.3e-22, "", "1.3e-22"),
    ],
)
def test_numbers_read_at_a_glance(value: float | None, unit: str, text: str) -> None:
    assert documents.number(value, unit) == text


def test_text_says_the_verdict_and_every_finding(diagnosis: Diagnosis) -> None:
    text = diagnosis_text(diagnosis)
    assert text.startswith(diagnosis.verdict.sentence)
    for one in diagnosis.findings:
        assert f"[high 0.75] {one.title}" in text
    assert "Settled by: NCCL_DEBUG=INFO logs." in text
    assert "9 hosts: node0, node1, node2, node3, node4 and 4 more" in text
    assert "33.3% of the throughput, 1.25 GPU hours" in text
    assert "fabricobs sql 'SELECT 1 AS raw'" in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_text_without_findings_says_so(diagnosis: Diagnosis) -> None:
    nothing = replace(diagnosis, findings=())
    assert "No findings." in diagnosis_text(nothing)
    unjudged = replace(nothing, verdict=replace(nothing.verdict, judged=False))
    assert "holds too little to judge" in diagnosis_text(unjudged)


def test_text_from_a_log_cannot_steer_the_terminal(diagnosis: Diagnosis) -> None:
    verdict = replace(diagnosis.verdict, sentence="a\x1b[2Jb\x9b1mc\u202ed")
    text = diagnosis_text(replace(diagnosis, verdict=verdict))
    assert all(character.isprintable() or character == "\n" for character in text)


def test_page_loads_nothing(reading: Reading, page: Path) -> None:
    assert page.stat().st_size < 5_000_000
    for _, attributes in reading.elements:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
    text = page.read_text(encoding="utf-8")
    assert "@import" not in text and "url(" not in text.partition("</style>")[0]


def test_page_runs_its_own_two_scripts_and_no_other(reading: Reading) -> None:
    (policy,) = (
        attributes["content"] or ""
        for tag, attributes in reading.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    modules = [text for kind, text in reading.scripts if kind == "module"]
    assert len(modules) == 2
    assert len(reading.scripts) == 3
    for text in modules:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_page_escapes_what_logs_say(reading: Reading, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    # In the charts it is data: there, whole, and never as markup.
    assert any(EVIL in string for string in strings(reading.specs))
    assert not any(tag in {"iframe", "img", "object", "link"} for tag, _ in reading.elements)


def test_page_shows_every_finding_with_its_chart(reading: Reading, diagnosis: Diagnosis) -> None:
    text = " ".join(reading.texts)
    for one in diagnosis.findings:
        assert one.title in text
        assert one.explanation in text
    for question in diagnosis.verdict.questions:
        assert question.evidence in text
    assert "NCCL_DEBUG=INFO logs." in text
    assert "1,234" in text
    assert set(reading.drawn) == set(reading.specs) == {f"chart-{n}" for n in range(1, 5)}
    headings = [tag for tag, _ in reading.elements if tag in {"h1", "h2", "h3"}]
    assert headings.count("h1") == 1
    for tag, attributes in reading.elements:
        if tag == "th":
            assert attributes.get("scope") in {"row", "col"}


def test_page_shows_shared_sql_once(reading: Reading) -> None:
    assert " ".join(reading.texts).count("SELECT 1 AS raw") == 1


def test_page_is_the_same_every_time(
    diagnosis: Diagnosis, store: Path, page: Path, tmp_path: Path
) -> None:
    write_page(diagnosis, store, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == page.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


def test_page_of_an_empty_store_says_what_is_missing(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    empty = Diagnosis(
        Verdict("Cannot tell.", (Question("Is a link sick?", "unknown", "No.", "Logs."),), False),
        (finding("straggler"), finding("ecmp_skew", Entity("switch", switch="none"))),
    )
    write_page(empty, store, tmp_path / "page.html")
    reading = Reading((tmp_path / "page.html").read_text(encoding="utf-8"))
    text = " ".join(reading.texts)
    assert "The store holds no step times" in text
    assert "The data carry no judgement." in text
    assert reading.specs == {}


def test_page_that_cannot_be_written_leaves_nothing(
    diagnosis: Diagnosis, store: Path, tmp_path: Path
) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OSError):
        write_page(diagnosis, store, tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_page_stays_small_with_many_findings_ranks_and_steps(
    diagnosis: Diagnosis, tmp_path: Path
) -> None:
    steps = [
        {"job": JOB, "step": step, "rank": rank, "step_time_ms": 1e3, "compute_ms": 6e2 + rank}
        for step in range(200)
        for rank in range(256)
    ] + [{"job": "long", "step": step, "step_time_ms": 1e3 + step % 7} for step in range(20_000)]
    store = make_store(tmp_path / "store", steps=steps)
    victims = tuple(Entity("host", host=f"node{number}") for number in range(5000))
    many = tuple(
        finding("straggler", Entity("rank", rank=number, job=JOB), related=victims)
        for number in range(150)
    )
    write_page(replace(diagnosis, findings=many), store, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(page) < 5_000_000
    reading = Reading(page)
    assert " ".join(reading.texts).count("A row is a group of ranks") == 12
    assert "Each point joins up to" in page
    assert "left out: the page would grow" in page
    assert max(map(len, reading.specs["chart-2"]["datasets"].values())) == 60 * 128
    assert sum(tag == "article" for tag, _ in reading.elements) == 100


def test_heat_map_holds_the_slow_rank(store: Path) -> None:
    path = content.files("queries", ".sql")["report/rank_compute"]
    with open_session(store) as connection:
        answer = connection.execute(
            path.read_text(), {"job": JOB, "step_bins": 60, "rank_bins": 128}
        )
        names = [column[0] for column in answer.description]
        cells = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    slow = [cell for cell in cells if cell["excess"] > 0.1]
    assert {cell["rank"] for cell in slow} == {3}
    assert min(cell["first_step"] for cell in slow) == FAULT_STEP
    assert len(cells) == 60 * RANKS


def test_uplink_shares_add_up(store: Path) -> None:
    path = content.files("queries", ".sql")["report/uplink_shares"]
    with open_session(store) as connection:
        rows = connection.execute(path.read_text(), {"switch": LEAF, "most": 2000}).fetchall()
    by_moment: dict[datetime, float] = {}
    for *_, moment, _, share in rows:
        by_moment[moment] = by_moment.get(moment, 0.0) + share
    assert len(by_moment) == MINUTES - 1
    assert all(abs(total - 1) < 1e-9 for total in by_moment.values())
    assert max(share for *_, share in rows) == pytest.approx(0.5)


@pytest.mark.skipif(shutil.which(CHROMIUM) is None, reason="needs chromium")
def test_a_browser_draws_every_chart(page: Path, tmp_path: Path) -> None:
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu"]
    command += [f"--user-data-dir={tmp_path}", "--virtual-time-budget=10000", "--dump-dom"]
    run = subprocess.run(
        [*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    drawn = Reading(run.stdout).drawn
    assert len(drawn) == 4
    assert all(drawn.values()), drawn
    assert "could not be drawn:" not in run.stdout.partition('type="module"')[0]
