"""The report: a diagnosis as one HTML file that needs no network and runs no text of a log.

Everything from a log is escaped by the template. As a second wall the page's content security
policy runs the scripts named by their digests and nothing else, and allows no request at all.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from fabricobs import __version__
from fabricobs.cache_files import keep, kept
from fabricobs.diagnosis.findings import SEVERITIES, Clock, Diagnosis, Finding
from fabricobs.output_files import write_whole
from fabricobs.report import documents
from fabricobs.report.charts.source import Row
from fabricobs.report.charts.theme import CONFIG, properties
from fabricobs.report.figures import MOST_FINDINGS, Figures, draw_figures
from fabricobs.report.jobs import facts_of, named_words
from fabricobs.store.session import NO_SITE, Site

# Of the page's 5 MB, Vega takes 0.9 and text what is left.
_MOST_CHART_BYTES = 3_000_000
_MOST_DETAILED = 100
_MOST_NAMED = 100
_MOST_ROWS = 60
_COMPACT = (",", ":")
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class _Section:
    """One finding of the page; `sql` is empty where an earlier section shows the same."""

    number: int
    finding: Finding
    affected: list[tuple[str, list[str], int]]
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
) -> None:
    """Write the diagnosis with charts of the store from `since` on to `out`, all or nothing."""
    drawn = figures or draw_figures(diagnosis, store, extra, since=since, site=site)
    write_whole(_page(diagnosis, drawn, extra), out)


def _page(diagnosis: Diagnosis, figures: Figures, extra: tuple[Path, ...]) -> str:
    environment = _environment()
    own = [environment.get_template(name).render() for name in ("charts.js", "tables.js")]
    scripts = [_vega(), *own]
    specs = _that_fit(figures)
    styles = environment.get_template("report.css").render(
        light=properties("light"), dark=properties("dark")
    )
    return environment.get_template("report.html.j2").render(
        diagnosis=diagnosis,
        subject=_subject(diagnosis),
        costliest=next((f for f in diagnosis.findings if f.severity != "info"), None),
        figures=figures,
        sections=list(_sections(diagnosis.findings, extra)),
        most_charts=MOST_FINDINGS,
        most_detailed=_MOST_DETAILED,
        most_rows=_MOST_ROWS,
        severities=SEVERITIES,
        clocks=sorted(diagnosis.coverage.clocks, key=_by_doubt),
        open_questions=[q for q in diagnosis.verdict.questions if q.answer == "unknown"],
        totals=_totals(figures.files),
        charts={"config": CONFIG, "specs": specs},
        drawn=specs.keys(),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        styles=Markup(styles),
        version=__version__,
    )


def _subject(diagnosis: Diagnosis) -> str:
    """Say what was diagnosed: the jobs, the ranks, the time."""
    facts = dict(diagnosis.coverage.facts)
    jobs = [documents.counted(len(diagnosis.jobs), "job")] if diagnosis.jobs else []
    ranks = [f"ranks {facts['ranks']}"] if "ranks" in facts else []
    times = [f"{facts['from']} to {facts['to']}"] if {"from", "to"} <= facts.keys() else []
    return ", ".join([f"fabricobs {__version__}", *jobs, *ranks, *times])


def _that_fit(figures: Figures) -> dict[str, dict[str, Any]]:
    """Return the specifications by figure, as many as the page has room for."""
    room = _MOST_CHART_BYTES
    specs = {}
    for figure in figures:
        size = len(htmlsafe_json_dumps(figure.spec, separators=_COMPACT))
        if size <= room:
            room -= size
            specs[figure.key] = figure.spec
    return specs


def _sections(findings: Sequence[Finding], extra: tuple[Path, ...]) -> Iterator[_Section]:
    shown: dict[str, int] = {}
    for number, finding in enumerate(findings[:_MOST_DETAILED], start=1):
        first = shown.setdefault(finding.query, number)
        named = documents.by_type(finding.related).items()
        yield _Section(
            number=number,
            finding=finding,
            affected=[(count, n[:_MOST_NAMED], max(len(n) - _MOST_NAMED, 0)) for count, n in named],
            sql=documents.question_sql(finding.query, extra) if first == number else "",
            sql_shown_at=first,
        )


def _by_doubt(clock: Clock) -> tuple[bool, bool, float]:
    """Order clocks: those that were corrected, those nobody knows, the farthest of the others."""
    return (not clock.corrected, clock.seconds is not None, -abs(clock.seconds or 0.0))


def _totals(files: Sequence[Row]) -> Row:
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
    environment.globals |= {"facts_of": facts_of, "named_words": named_words}
    return environment


def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, for the dialect Altair writes.

    It takes 1.4 CPU s to make and is the same until vl-convert or Altair is replaced.
    """
    wanted = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    name = f"vega-{version('vl-convert-python')}-{wanted}.js"
    script = kept(name, _HERE)
    if script is None:
        known = vl_convert.get_vegalite_versions()
        entry = "window.vegaEmbed = vegaEmbed;"
        script = vl_convert.javascript_bundle(entry, wanted if wanted in known else None).encode()
        keep(name, script, _HERE)
    # Nothing in it may end the script element; inside a JavaScript string \/ is /.
    return script.decode().replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: Iterable[str]) -> str:
    """Return the content security policy: these scripts, the page's own styles, no request."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )
