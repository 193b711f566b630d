"""The report: what it says as JSON, text and page; and that no text of a log becomes markup."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from report_case import (
    EVIL,
    FAULT_STEP,
    JOB,
    LEAF,
    MINUTES,
    RANKS,
    START,
    at,
    big_store,
    evil_diagnosis,
    evil_store,
    finding,
    host,
    make_store,
)
from typer.testing import CliRunner

from fabricobs import content
from fabricobs.cli import app
from fabricobs.diagnosis.findings import (
    CounterBreak,
    Diagnosis,
    Entity,
    Question,
    Verdict,
)
from fabricobs.report import documents, wording
from fabricobs.report.html import linked_findings, script
from fabricobs.report.page import write_page
from fabricobs.report.screen import summary_text
from fabricobs.report.terminal import diagnosis_text, in_colour
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return evil_store(tmp_path_factory.mktemp("report") / "store")


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    return evil_diagnosis()


@pytest.fixture(scope="module")
def page(diagnosis: Diagnosis, store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_page(diagnosis, store, out, made=START)
    return out


def test_what_if_is_told_in_every_form(page: Path, diagnosis: Diagnosis) -> None:
    (each,) = json.loads(documents.diagnosis_json(diagnosis))["what_if"]
    assert (each["saved_share"], each["speedup"]) == (0.2, 1.25)
    assert "1.25 times the throughput with" in diagnosis_text(diagnosis)
    assert {"20.0", "1.25", f"slow{EVIL}"} <= set(Reading(page.read_text()).texts)


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
        if tag == "figure":
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
    def charts(self) -> set[str]:
        """The charts that are drawn, in both widths."""
        return {name for name, count in self.drawn.items() if count == 2}


@pytest.fixture(scope="module")
def reading(page: Path) -> Reading:
    return Reading(page.read_text(encoding="utf-8"))


def test_json_has_the_fields_of_schema_version_1(diagnosis: Diagnosis) -> None:
    document = json.loads(documents.diagnosis_json(diagnosis))
    assert document["schema_version"] == 1
    assert set(document["verdict"]) == {"sentence", "judged", "questions"}
    assert [q["answer"] for q in document["verdict"]["questions"]] == ["problem", "ok", "unknown"]
    first = document["findings"][0]
    assert list(first) == [
        *("id", "kind", "severity", "confidence", "families", "entities", "related"),
        *("start", "end"),
        *("start_step", "end_step", "bursts", "detected_at"),
        *("loss_share", "loss_shared_with", "run_share", "of_runs"),
        *("gpu_hours_lost", "cost", "currency", "state", "slower_from", "begun_by"),
        "to_its_end",
        *("from_first_step", "from_first_reading", "until_last_step", "traffic_ended"),
        "unfelt",
        *("after_step", "title"),
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
        "values": {},
        **{"first_time": None, "last_time": None},
        "missing": [f"cables: {EVIL}"],
        "clocks": [
            {"of": "device", "name": LEAF, "seconds": 2.5, "error": 0.2, "corrected": True},
            {"of": "host", "name": host(0), "seconds": None, "error": 30.0, "corrected": False},
        ],
        "counter_breaks": [
            {
                **{"device": LEAF, "counter": "rx_errors", "what": "reset", "ports": 2, "times": 3},
                "first": "2026-03-02T09:01:00.000Z",
                **{"source": None, "port": None, "counted_by": None},
            }
        ],
    }


def test_json_is_what_its_schema_says(diagnosis: Diagnosis) -> None:
    told = CliRunner().invoke(app, ["schema", "--json"])
    schema = json.loads(told.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(documents.diagnosis_json(diagnosis))
    jsonschema.validate(document, schema)
    # Every field is described: what the schema does not know is not written.
    assert set(document) <= set(schema["properties"])
    finding = schema["$defs"]["FindingDocument"]
    assert set(document["findings"][0]) == set(finding["properties"])
    del document["findings"][0]["severity"]
    with pytest.raises(jsonschema.ValidationError, match="severity"):
        jsonschema.validate(document, schema)


def test_json_has_null_where_there_is_no_number(diagnosis: Diagnosis) -> None:
    odd = replace(diagnosis.findings[0], loss_share=float("nan"), gpu_hours_lost=float("inf"))
    document = json.loads(documents.diagnosis_json(replace(diagnosis, findings=(odd,))))
    assert document["findings"][0]["loss_share"] is None
    assert document["findings"][0]["gpu_hours_lost"] is None


def test_a_query_that_is_a_question_gives_its_sql(tmp_path: Path) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "mine.sql").write_text("-- question: Mine?\nSELECT 1\n")
    assert documents.query_sql("mine", (tmp_path,)).endswith("SELECT 1\n")
    assert documents.query_sql("SELECT 2") == "SELECT 2"


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
    assert wording.number(value, unit) == text


def test_text_says_the_verdict_and_every_finding(diagnosis: Diagnosis) -> None:
    text = diagnosis_text(diagnosis)
    assert text.startswith(diagnosis.verdict.sentence)
    for one in diagnosis.findings:
        assert f"[high 0.75] {one.title}" in text
    assert "To answer this, provide: NCCL_DEBUG=INFO logs." in text
    assert "9 hosts: node0, node1, node2, node3, node4 and 4 more" in text
    assert "33.3% of the throughput, 1.25 GPU hours" in text
    assert "fabricobs sql 'SELECT 1 AS raw'" in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_a_summary_fits_a_screen(diagnosis: Diagnosis) -> None:
    worst = diagnosis.findings[0]
    many = [replace(worst, kind=f"kind_{number}") for number in range(9)]
    text = summary_text(replace(diagnosis, findings=(*many, replace(worst, severity="info"))))
    assert text.startswith(diagnosis.verdict.sentence)
    assert text.count(worst.title) == 5
    assert f"{many[0].id}: since" in text
    assert ", last seen at step" in text
    assert f"First step: {worst.next_steps[0]}"[:60] in text
    assert "and 4 high, 1 info: `fabricobs explain` lists them" in text
    assert len(text.splitlines()) <= 40


@pytest.mark.parametrize(("columns", "width"), [("20", 60), ("72", 72), ("160", 160), ("999", 200)])
def test_lines_are_as_wide_as_the_terminal(
    diagnosis: Diagnosis, monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    long = replace(diagnosis.verdict, sentence="word " * 100)
    widest = max(map(len, summary_text(replace(diagnosis, verdict=long)).splitlines()))
    assert width - len("word ") <= widest <= width


def test_colour_adds_nothing_but_colour(diagnosis: Diagnosis) -> None:
    text = summary_text(diagnosis)
    painted = in_colour(text)
    assert "\x1b[31mhigh\x1b[0m" in painted
    assert re.sub(r"\x1b\[\d+m", "", painted) == text


def test_text_without_findings_says_so(diagnosis: Diagnosis) -> None:
    nothing = replace(diagnosis, findings=())
    assert "No findings." in diagnosis_text(nothing)
    unknown = replace(nothing, verdict=replace(nothing.verdict, judged=False))
    assert "too little data to diagnose" in diagnosis_text(unknown)


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


def test_page_runs_its_own_scripts_and_no_other(reading: Reading) -> None:
    (policy,) = (
        attributes["content"] or ""
        for tag, attributes in reading.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-eval" not in policy
    assert "unsafe-inline" not in policy
    (script,) = (text for _, text in reading.scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'; style-src 'sha256-" in policy
    assert not any("style" in attributes for _, attributes in reading.elements)


def test_page_escapes_what_logs_say(reading: Reading, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    # In the charts it is text and the name of a part: there, whole, and never as markup.
    assert any(EVIL in text and "part: " in text for text in reading.texts)
    assert not any(tag in {"iframe", "img", "object", "link"} for tag, _ in reading.elements)


def test_page_shows_every_finding_with_its_chart(reading: Reading, diagnosis: Diagnosis) -> None:
    text = " ".join(reading.texts)
    for one in diagnosis.findings:
        assert one.title in text
        assert one.explanation in text
    for question in diagnosis.verdict.questions:
        assert question.evidence in text
    assert "`" not in text.replace(script(), "")
    assert "NCCL_DEBUG=INFO logs." in text
    assert "1,234" in text
    assert list(reading.drawn) == [
        "step-time",
        "finding-1-rank-compute",
        "finding-2-uplink-shares",
        "finding-3-collective-times",
        "topology",
    ]
    assert reading.charts == set(reading.drawn)
    headings = [tag for tag, _ in reading.elements if tag in {"h1", "h2", "h3"}]
    assert headings.count("h1") == 1
    for tag, attributes in reading.elements:
        if tag == "th":
            assert attributes.get("scope") in {"row", "col"}


@pytest.mark.parametrize("others", [0, 1, 5, 9])
def test_the_first_screen_names_every_finding_that_matters(
    diagnosis: Diagnosis, store: Path, tmp_path: Path, others: int
) -> None:
    first, *_ = diagnosis.findings
    more = [replace(first, kind=f"kind{n}", title=f"Title {n}.", loss_share=0.1) for n in range(9)]
    small = replace(first, kind="small", severity="low", title="A trifle")
    found = replace(diagnosis, findings=(first, *more[:others], small))
    write_page(found, store, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    screen = text[text.index("<header>") : text.index("</header>")]
    told = [f"Title {n}." in screen and f"#{more[n].id}" in screen for n in range(others)]
    assert told == [n < 6 for n in range(others)]
    assert ("3 more below" in screen) == (others == 9)
    assert screen.count("10.0% of the throughput") == min(others, 6)
    assert "A trifle" not in screen


def test_information_accuses_nobody(diagnosis: Diagnosis, store: Path, tmp_path: Path) -> None:
    one = replace(diagnosis.findings[0], severity="info", entities=(Entity("host", host="odd"),))
    found = replace(diagnosis, findings=(one,))
    write_page(found, store, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<dt>In question</dt><dd>odd</dd>" in page
    assert "culprit" not in page[page.index("finding-1") : page.index("Topology")].lower()


def test_a_finding_that_a_text_names_is_linked(diagnosis: Diagnosis) -> None:
    first = diagnosis.findings[0].id
    text = f"<b>, finding {first}; victim of finding 2, of finding 9"
    known = [each.id for each in diagnosis.findings]
    linked = linked_findings(
        text,
        list(enumerate(diagnosis.findings, start=1)),
        lambda id_: f"#{id_}" if id_ in known else None,
    )
    assert linked == (
        f'&lt;b&gt;, <a href="#{first}">finding {first}</a>; '
        f'victim of <a href="#{known[1]}">finding 2</a>, of finding 9'
    )


def test_page_shows_shared_sql_once(reading: Reading) -> None:
    assert " ".join(reading.texts).count("SELECT 1 AS raw") == 1


def test_page_is_the_same_every_time(
    diagnosis: Diagnosis, store: Path, page: Path, tmp_path: Path
) -> None:
    write_page(diagnosis, store, tmp_path / "again.html", made=START)
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
    assert reading.drawn == {}


def test_page_that_cannot_be_written_leaves_nothing(
    diagnosis: Diagnosis, store: Path, tmp_path: Path
) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OSError):
        write_page(diagnosis, store, tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_page_tells_what_cannot_be_relied_on(reading: Reading) -> None:
    text = " ".join(" ".join(reading.texts).split())
    assert "1 of 2 clock offsets are known; 1 were corrected" in text
    assert "+2.50" in text
    assert "rejected" in text
    assert "rx_errors reset" in text
    assert "Did NCCL choose well? No logs. To answer this, provide: NCCL_DEBUG=INFO logs." in text


def test_page_of_1024_gpus_and_many_findings_stays_small(
    diagnosis: Diagnosis, tmp_path: Path
) -> None:
    store = big_store(tmp_path / "store")
    victims = tuple(Entity("host", host=f"node{number}") for number in range(128))
    many = tuple(
        finding("straggler", Entity("rank", rank=number, job=JOB), related=victims)
        for number in range(150)
    )
    breaks = tuple(
        CounterBreak(f"leaf{number}", "rx_errors", "reset", 1, 1, at(0)) for number in range(5000)
    )
    covered = replace(diagnosis.coverage, breaks=breaks)
    write_page(replace(diagnosis, findings=many, coverage=covered), store, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(page) < 5_000_000
    reading = Reading(page)
    text = " ".join(reading.texts)
    assert text.count("A row is a group of ranks") == 12
    assert "Charts are drawn for the first 12 findings" in text
    assert "Each point joins up to" in text
    assert "4,940 more rows are left out" in text
    assert "68 more are named with their findings" in text
    assert sum(tag == "article" for tag, _ in reading.elements) == 100
    assert any(text.startswith("part: ") and "more hosts" in text for text in reading.texts)


def test_page_leaves_charts_out_before_it_grows_too_big(
    diagnosis: Diagnosis, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabricobs.report.page._MOST_CHART_BYTES", 20_000)
    write_page(diagnosis, store, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The chart is left out: the page would grow too big." in page
    drawn = Reading(page).charts
    assert drawn
    assert len(drawn) < 5


def test_heat_map_holds_the_slow_rank(store: Path) -> None:
    path = content.files("queries", ".sql")["report/rank_compute"]
    sql = path.read_text()
    with open_session(store, sql) as connection:
        answer = connection.execute(sql, {"job": JOB, "step_bins": 60, "rank_bins": 128})
        names = [column[0] for column in answer.description]
        cells = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    slow = [cell for cell in cells if cell["excess"] > 0.1]
    assert {cell["rank"] for cell in slow} == {3}
    assert min(cell["first_step"] for cell in slow) == FAULT_STEP
    assert len(cells) == 60 * RANKS


def test_uplink_shares_add_up(store: Path) -> None:
    path = content.files("queries", ".sql")["report/uplink_shares"]
    sql = path.read_text()
    with open_session(store, sql) as connection:
        rows = connection.execute(sql, {"switch": LEAF, "most": 2000}).fetchall()
    by_moment: dict[datetime, float] = {}
    for *_, moment, _, share in rows:
        by_moment[moment] = by_moment.get(moment, 0.0) + share
    assert len(by_moment) == MINUTES - 1
    assert all(abs(total - 1) < 1e-9 for total in by_moment.values())
    assert max(share for *_, share in rows) == pytest.approx(0.5)


def test_a_notebook_shows_a_diagnosis_as_tables(diagnosis: Diagnosis) -> None:
    shown = diagnosis._repr_html_()
    assert EVIL not in shown
    assert diagnosis.findings[0].id in shown
    assert shown.count("<tr>") == 2 + len(diagnosis.findings) + len(diagnosis.verdict.questions)
