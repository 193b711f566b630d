"""The figures of a report: charts with their words, made once for the page and for files."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt
import vl_convert

from fabricobs import stopping
from fabricobs.diagnosis.attempts import Attempts
from fabricobs.diagnosis.findings import Diagnosis, Failure, Finding, Question
from fabricobs.diagnosis.verdict import ANSWERED_BY, QUESTIONS
from fabricobs.querying import StoredQuery, stored_queries
from fabricobs.report.charts.answers import ANSWERS
from fabricobs.report.charts.catalogue import chart_of
from fabricobs.report.charts.source import Row, Source
from fabricobs.report.charts.theme import coloured
from fabricobs.report.charts.timeline import step_timeline
from fabricobs.report.charts.topology import Marked, draw_topology
from fabricobs.report.evidence_rows import (
    NIC_NAMES,
    Aliases,
    EvidenceRows,
    evidence_rows,
    names_nic,
    nic_aliases,
)
from fabricobs.report.source_input import SourceInput, source_input
from fabricobs.store.session import NO_SITE, Site, open_session

if TYPE_CHECKING:
    import duckdb

MOST_FINDINGS = 12
_MOST_WITH_ROWS = 100
_KEYS = dict(zip(QUESTIONS, ANSWERED_BY, strict=True))
_WIDTH = 960  # pixels of a chart's frame in a file of its own
_SHARPNESS = 2  # pixels of a PNG for one of the drawing


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart: its name among the figures, its words as text, its specification as JSON."""

    key: str
    title: str
    caption: str
    spec: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of a diagnosis; `of_findings` by place, from 1."""

    timeline: Figure | None
    topology: Figure | None
    marked: tuple[Marked, ...]
    of_findings: dict[int, Figure]
    files: tuple[Row, ...]
    of_questions: Mapping[str, Figure] = field(default_factory=dict)  # that no finding answers
    answered_by: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # findings by place
    ports: tuple[Row, ...] = ()  # of every host and switch
    ranks: tuple[Row, ...] = ()  # and where each runs
    rows_of: Mapping[int, EvidenceRows] = field(default_factory=dict)  # findings, by place
    source_of: Mapping[int, SourceInput] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()

    def __iter__(self) -> Iterator[Figure]:
        """Yield every figure in the order of the page."""
        yield from (f for f in (self.timeline, self.topology) if f is not None)
        yield from self.of_findings.values()
        yield from self.of_questions.values()


def draw_figures(
    diagnosis: Diagnosis,
    store: Path,
    extra: tuple[Path, ...] = (),
    *,
    since: datetime | None = None,
    site: Site = NO_SITE,
    session: "duckdb.DuckDBPyConnection | None" = None,
) -> Figures:
    """Draw the store from `since` on as the diagnosis sees it; a chart that fails is told.

    `session` is that of the diagnosis, which stays open; else one is opened.
    """
    attempts = Attempts()
    with ExitStack() as stack:
        if session is None:
            opened = open_session(store, extra=extra, since=since, site=site, keep=True)
            session = stack.enter_context(opened)
        source = Source(session, extra)
        timeline = attempts.attempt(
            "chart of the step times",
            lambda: _if_any(
                "step-time", step_timeline(source, diagnosis.segments, diagnosis.findings)
            ),
            None,
        )
        topology = attempts.attempt(
            "drawing of the topology", lambda: draw_topology(source, diagnosis.findings), None
        )

        def parts(name: str) -> tuple[Row, ...]:
            rows = partial(source.rows, f"report/{name}")
            return tuple(attempts.attempt(f"list of the {name}", rows, []))

        of_findings = {}
        for number, finding in enumerate(diagnosis.findings[:MOST_FINDINGS], start=1):
            stopping.check()
            drawn = attempts.attempt(
                f"chart of finding {finding.id}",
                partial(_of_finding, source, number, finding),
                None,
            )
            if drawn is not None:
                of_findings[number] = drawn
        rows_of = {}
        source_of: dict[int, SourceInput] = {}
        known = stored_queries(extra)
        for number, finding in enumerate(diagnosis.findings[:_MOST_WITH_ROWS], start=1):
            stopping.check()
            rows = attempts.attempt(
                f"rows of finding {finding.id}", partial(_rows_of, source, known, finding), None
            )
            if rows is not None:
                rows_of[number] = rows
            if finding.severity != "info":
                told = partial(_source_of, source, known, finding, rows)
                source_of[number] = attempts.attempt(
                    f"input of finding {finding.id}", told, SourceInput()
                )
        return Figures(
            timeline=timeline,
            topology=None if topology is None else _figure("topology", topology.chart),
            marked=() if topology is None else topology.marked,
            of_findings=of_findings,
            files=tuple(source.rows("report/files_by_format")),
            of_questions=_of_questions(source, diagnosis, attempts),
            answered_by=_answered_by(source, diagnosis.findings),
            ports=parts("ports"),
            ranks=parts("ranks"),
            rows_of=rows_of,
            source_of=source_of,
            failures=tuple(attempts.failures),
        )


def _rows_of(
    source: Source, known: Mapping[str, StoredQuery], finding: Finding
) -> EvidenceRows | None:
    if finding.query not in known:  # a statement of another installation is never run
        return None
    sql = known[finding.query].sql
    return evidence_rows(finding, sql, source.answer(sql), _aliases_of(source, finding))


def _source_of(
    source: Source,
    known: Mapping[str, StoredQuery],
    finding: Finding,
    rows: EvidenceRows | None,
) -> SourceInput:
    if finding.query not in known:
        return SourceInput()
    query = known[finding.query]
    aliases, tables = _aliases_of(source, finding), source.tables_of(query.sql)
    proving = source.lines_of(finding)
    return source_input(source.connection, finding, query, tables, rows, aliases, proving)


def _aliases_of(source: Source, finding: Finding) -> Aliases:
    return nic_aliases(source.answer(NIC_NAMES)) if names_nic(finding) else {}


def _of_questions(source: Source, diagnosis: Diagnosis, attempts: Attempts) -> dict[str, Figure]:
    """Draw what answers a question without a finding: all parts, the worst of them named."""
    drawn = {}
    for question in diagnosis.verdict.questions:
        key = _KEYS.get(question.question)
        if key not in ANSWERS or question.answer == "problem":
            continue
        stopping.check()
        figure = attempts.attempt(
            f"chart of {question.question!r}",
            partial(_of_question, source, f"answer-{key}", question),
            None,
        )
        if figure is not None:
            drawn[question.question] = figure
    return drawn


def _of_question(source: Source, key: str, question: Question) -> Figure | None:
    return _if_any(key, ANSWERS[_KEYS[question.question]](source, question))


def _answered_by(source: Source, findings: Sequence[Finding]) -> dict[str, tuple[int, ...]]:
    """Return the findings that answer each question, by place; those without a cost answer none."""
    questions = {key: question for question, key in _KEYS.items()}
    answered: dict[str, tuple[int, ...]] = {}
    for number, finding in enumerate(findings, start=1):
        model = source.model_of(finding)
        if model is not None and model.answers is not None and finding.severity != "info":
            question = questions[model.answers]
            answered[question] = (*answered.get(question, ()), number)
    return answered


def _if_any(key: str, chart: alt.LayerChart | None) -> Figure | None:
    return None if chart is None else _figure(key, chart)


def _of_finding(source: Source, number: int, finding: Finding) -> Figure | None:
    chosen = chart_of(source, finding)
    return None if chosen is None else _figure(f"finding-{number}-{chosen[0]}", chosen[1])


def save_figures(figures: Figures, folder: Path) -> tuple[list[Path], tuple[Failure, ...]]:
    """Write every figure as PNG and SVG into a folder, which is made.

    Returns the files, and which figures could not be converted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    attempts = Attempts()
    for figure in figures:
        stopping.check()
        text = {"text": figure.title, "subtitle": _lines(figure.caption)}
        spec = coloured({**figure.spec, "title": text}, _WIDTH)
        png, svg = (folder / f"{figure.key}.{suffix}" for suffix in ("png", "svg"))
        drawn = attempts.attempt(f"picture {figure.key}", partial(_pictures, spec), None)
        if drawn is not None:
            png.write_bytes(drawn[0])
            svg.write_text(drawn[1], encoding="utf-8")
            written += [png, svg]
    return written, tuple(attempts.failures)


def _pictures(spec: dict[str, Any]) -> tuple[bytes, str]:
    """Return a drawing as PNG and as SVG."""
    png = vl_convert.vegalite_to_png(spec, scale=_SHARPNESS)
    return png, vl_convert.vegalite_to_svg(spec)


def _figure(key: str, chart: alt.LayerChart) -> Figure:
    spec = chart.to_dict()
    del spec["$schema"]
    words = spec.pop("title")
    return Figure(key.replace("_", "-"), words["text"], " ".join(words["subtitle"]), spec)


def _lines(caption: str) -> list[str]:
    """Return a caption in lines that fit a figure's width."""
    return textwrap.wrap(caption, 150)
