"""The report as one file: a diagnosis with all its charts, for a mail, a ticket, a browser."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fabricobs import stopping
from fabricobs.diagnosis.attempts import Attempts
from fabricobs.diagnosis.findings import SEVERITIES, Clock, Diagnosis, Entity, Failure, Finding
from fabricobs.output_files import write_whole
from fabricobs.querying import stored_queries
from fabricobs.report import wording
from fabricobs.report.charts.data_table import DataTable, data_tables
from fabricobs.report.charts.source import Row
from fabricobs.report.charts.svg import Drawing, draw_svg
from fabricobs.report.evidence_rows import EvidenceRows
from fabricobs.report.figures import MOST_FINDINGS, Figure, Figures, draw_figures
from fabricobs.report.html import Addresses, page
from fabricobs.report.source_input import SourceInput
from fabricobs.store.location import shown
from fabricobs.store.session import NO_SITE, Site

_MOST_CHART_BYTES = 4_000_000
_MOST_DETAILED = 100
_MOST_NAMED = 100
_MOST_ROWS = 60
_MOST_RAW_ROWS = 16  # of a finding
_MOST_OTHERS = 6  # of the findings that the first screen names beside the first
_SERIOUS = SEVERITIES[SEVERITIES.index("medium") :]
_MOST_UPRIGHT = 3  # rows that stand as columns, with the meaning of each value beside it


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure as pages show it: its SVG and the rows behind it."""

    drawing: Drawing
    tables: tuple[DataTable, ...]

    def linked(self, address_of: Callable[[str], str | None]) -> Markup:
        """Return the SVG with the addresses of a page."""
        return self.drawing.linked(address_of)


@dataclass(frozen=True, slots=True)
class Charts:
    """Figures as pages show them, by name, and which could not be drawn."""

    drawn: Mapping[str, Drawn]
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One finding of a page; `sql` is empty where an earlier section shows the same query."""

    number: int
    finding: Finding
    affected: list[tuple[str, tuple[Entity, ...], int]]
    figure: Figure | None
    rows: EvidenceRows | None
    source: SourceInput
    meanings: Mapping[str, str]  # by column of the rows
    sql: str
    sql_shown_at: int


def write_page(
    diagnosis: Diagnosis,
    store: Path,
    out: Path,
    extra: tuple[Path, ...] = (),
    *,
    since: datetime | None = None,
    site: Site = NO_SITE,
    figures: Figures | None = None,
    charts: Charts | None = None,
    made: datetime | None = None,
) -> None:
    """Write the diagnosis with charts of the store from `since` on to `out`, all or nothing.

    What is drawn already is given as `figures` and `charts`; `made` is when, UTC, else now.
    """
    given = figures or draw_figures(diagnosis, store, extra, since=since, site=site)
    shown = {finding.id for finding in diagnosis.findings[:_MOST_DETAILED]}
    addresses = Addresses(lambda id_: f"#{id_}" if id_ in shown else None, lambda _: None)
    listed = list(enumerate(diagnosis.findings[:_MOST_DETAILED], start=1))
    context = context_of(diagnosis, store, given, charts or draw(given))
    text = page(
        "overview.html.j2",
        addresses,
        **context | ({"made": made} if made else {}),
        sections=list(sections(listed, given, extra)),
        parts=(),
    )
    write_whole(text, out)


def draw(figures: Figures) -> Charts:
    """Draw the figures, as many as a page has room for."""
    room = _MOST_CHART_BYTES
    drawn: dict[str, Drawn] = {}
    attempts = Attempts()
    for figure in figures:
        stopping.check()
        made = attempts.attempt(f"chart {figure.key}", partial(_drawn, figure), None)
        size = 0 if made is None else sum(map(len, made.drawing.svg.values()))
        if made is not None and size <= room:
            room -= size
            drawn[figure.key] = made
    return Charts(drawn, tuple(attempts.failures))


def _drawn(figure: Figure) -> Drawn:
    return Drawn(draw_svg(figure.spec, figure.key), tuple(data_tables(figure.spec)))


def context_of(
    diagnosis: Diagnosis, store: Path, figures: Figures, charts: Charts
) -> dict[str, Any]:
    """Return what every page about a diagnosis of a store says."""
    costliest = next((f for f in diagnosis.findings if f.severity != "info"), None)
    return {
        "diagnosis": diagnosis,
        "store": shlex.quote(shown(store)),
        "subject": wording.subject_words(diagnosis),
        "made": datetime.now(UTC).replace(tzinfo=None),
        "costliest": costliest,
        "others": [f for f in diagnosis.findings if f.severity in _SERIOUS and f is not costliest],
        "most_others": _MOST_OTHERS,
        "figures": figures,
        "drawn": charts.drawn,
        "failures": (*diagnosis.failures, *figures.failures, *charts.failures),
        "numbered": list(enumerate(diagnosis.findings, start=1)),
        "most_charts": MOST_FINDINGS,
        "most_detailed": _MOST_DETAILED,
        "most_rows": _MOST_ROWS,
        "most_raw": _MOST_RAW_ROWS,
        "most_upright": _MOST_UPRIGHT,
        "severities": SEVERITIES,
        "clocks": sorted(diagnosis.coverage.clocks, key=_by_doubt),
        "open_questions": [q for q in diagnosis.verdict.questions if q.answer == "unknown"],
        "totals": _totals(figures.files),
    }


def sections(
    listed: Sequence[tuple[int, Finding]], figures: Figures, extra: tuple[Path, ...]
) -> Iterator[Section]:
    """Yield a section for each finding with its number; the same query is shown once."""
    known = stored_queries(extra)
    shown: dict[str, int] = {}
    for number, finding in listed:
        first = shown.setdefault(finding.query, number)
        rows = figures.rows_of.get(number)
        sql = known[finding.query].sql if finding.query in known else finding.query
        yield Section(
            number=number,
            finding=finding,
            affected=list(_affected(finding)),
            figure=figures.of_findings.get(number),
            rows=rows,
            source=figures.source_of.get(number, SourceInput()),
            meanings=dict(known[finding.query].columns) if finding.query in known else {},
            sql=(rows.sql if rows else sql) if first == number else "",
            sql_shown_at=first,
        )


def _affected(finding: Finding) -> Iterator[tuple[str, tuple[Entity, ...], int]]:
    """Yield victims and path by type: how many, the first of them, how many more."""
    for count, entities in wording.by_type(finding.related).items():
        yield count, tuple(entities[:_MOST_NAMED]), max(len(entities) - _MOST_NAMED, 0)


def _by_doubt(clock: Clock) -> tuple[bool, bool, float]:
    """Order clocks: those that were corrected, those nobody knows, the farthest of the others."""
    return (not clock.corrected, clock.seconds is not None, -abs(clock.seconds or 0.0))


def _totals(files: Sequence[Row]) -> Row:
    columns = ("files", "bytes", "lines", "parsed", "ignored", "unread", "problems")
    return {column: sum(row[column] or 0 for row in files) for column in columns}
