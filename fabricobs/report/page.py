"""The report: a diagnosis as one HTML file that needs no network and runs no text of a log.

Everything from a log is escaped by the template. As a second wall the page's content security
policy runs the two scripts named by their digests and nothing else, and allows no request at all.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import altair as alt
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from fabricobs import __version__
from fabricobs.diagnosis.findings import Diagnosis, Finding
from fabricobs.report import charts, documents
from fabricobs.store.session import NO_SITE, Site, open_session

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Of the page's 5 MB, Vega takes 0.9 and text what is left.
_MOST_CHART_BYTES = 3_000_000
_MOST_CHARTS = 12
_MOST_DETAILED = 100
_MOST_NAMED = 100
_COMPACT = (",", ":")
_LEFT_OUT = "The chart is left out: the page would grow beyond 5 MB."


@dataclass(frozen=True, slots=True)
class _Figure:
    """One chart of the page: its words as text, its specification as JSON."""

    key: str
    title: str
    caption: str
    spec: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class _Section:
    """One finding of the page; `sql` is empty where an earlier section shows the same."""

    number: int
    finding: Finding
    figure: _Figure | None
    affected: list[tuple[str, list[str], int]]
    sql: str
    sql_shown_at: int


@dataclass(slots=True)
class _Figures:
    """Makes figures of charts while there is room for them."""

    room: int = _MOST_CHART_BYTES
    made: list[_Figure] = field(default_factory=list)

    def add(self, chart: alt.LayerChart | None) -> _Figure | None:
        """Return the figure of a chart; without its drawing once the page is full."""
        if chart is None:
            return None
        spec = chart.to_dict()
        del spec["$schema"]
        words = spec.pop("title")
        caption = " ".join(words.get("subtitle", ()))
        size = len(htmlsafe_json_dumps(spec, separators=_COMPACT))
        key = f"chart-{len(self.made) + 1}"
        if size > self.room:
            figure = _Figure(key, words["text"], f"{caption} {_LEFT_OUT}".strip(), None)
        else:
            self.room -= size
            figure = _Figure(key, words["text"], caption, spec)
        self.made.append(figure)
        return figure


def write_page(
    diagnosis: Diagnosis,
    store: Path,
    out: Path,
    extra: tuple[Path, ...] = (),
    *,
    since: datetime | None = None,
    site: Site = NO_SITE,
) -> None:
    """Write the diagnosis with charts of the store from `since` on to `out`, all or nothing."""
    page = _page(diagnosis, store, extra, since, site)
    unfinished = out.with_name(f".{out.name}.{uuid4().hex}")
    try:
        unfinished.write_text(page, encoding="utf-8", errors="replace")
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


def _page(
    diagnosis: Diagnosis,
    store: Path,
    extra: tuple[Path, ...],
    since: datetime | None,
    site: Site,
) -> str:
    figures = _Figures()
    with open_session(store, extra=extra, since=since, site=site) as connection:
        timeline = figures.add(
            charts.step_timeline(connection, diagnosis.segments, diagnosis.findings, extra)
        )
        sections = list(_sections(diagnosis.findings, connection, figures, extra))
        files = charts.rows(connection, "files_by_format", extra)
    environment = _environment()
    scripts = [_vega(), environment.get_template("charts.js").render()]
    return environment.get_template("report.html.j2").render(
        diagnosis=diagnosis,
        costliest=next((f for f in diagnosis.findings if f.severity != "info"), None),
        timeline=timeline,
        sections=sections,
        most_charts=_MOST_CHARTS,
        most_detailed=_MOST_DETAILED,
        files=files,
        totals=_totals(files),
        specs={figure.key: figure.spec for figure in figures.made if figure.spec is not None},
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        styles=Markup(environment.get_template("report.css").render()),
        version=__version__,
    )


def _sections(
    findings: Sequence[Finding],
    connection: "DuckDBPyConnection",
    figures: _Figures,
    extra: tuple[Path, ...],
) -> Iterator[_Section]:
    shown: dict[str, int] = {}
    for number, finding in enumerate(findings[:_MOST_DETAILED], start=1):
        first = shown.setdefault(finding.query, number)
        sql = documents.question_sql(finding.query, extra) if first == number else ""
        named = documents.by_type(finding.related).items()
        yield _Section(
            number=number,
            finding=finding,
            figure=figures.add(_chart(finding, connection, extra))
            if number <= _MOST_CHARTS
            else None,
            affected=[(count, n[:_MOST_NAMED], max(len(n) - _MOST_NAMED, 0)) for count, n in named],
            sql=sql,
            sql_shown_at=first,
        )


def _chart(
    finding: Finding, connection: "DuckDBPyConnection", extra: tuple[Path, ...]
) -> alt.LayerChart | None:
    """Return the chart that shows a finding best with the data there are."""
    chart = None
    if finding.kind == "ecmp_skew":
        chart = charts.uplink_shares(connection, finding, extra)
    elif finding.kind == "straggler":
        chart = charts.rank_compute(connection, finding, extra)
    return chart if chart is not None else charts.collective_times(connection, finding, extra)


def _totals(files: Sequence[charts.Row]) -> charts.Row:
    columns = ("files", "bytes", "lines", "parsed", "ignored", "unread", "problems")
    return {column: sum(row[column] or 0 for row in files) for column in columns}


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fabricobs.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    for function in (
        documents.number,
        documents.percent,
        documents.utc,
        documents.cost_words,
        documents.confidence_words,
    ):
        environment.filters[function.__name__] = function
    environment.policies["json.dumps_kwargs"] = {"separators": _COMPACT}
    environment.globals["moment_words"] = documents.moment_words
    return environment


def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, for the dialect Altair writes."""
    wanted = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    known = vl_convert.get_vegalite_versions()
    entry = "window.vegaEmbed = vegaEmbed;"
    bundle = vl_convert.javascript_bundle(entry, wanted if wanted in known else None)
    # Nothing in it may end the script element; inside a JavaScript string \/ is /.
    return str(bundle).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: Iterable[str]) -> str:
    """Return the content security policy: these scripts, the page's own styles, no request."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        # Vega compiles the expressions of a chart, hence unsafe-eval.
        f"default-src 'none'; script-src {allowed} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )
