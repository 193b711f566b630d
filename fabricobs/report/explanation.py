"""One finding in full: its text, its evidence, and the rows behind it."""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import polars as pl

from fabricobs.diagnosis.findings import (
    SEVERITIES,
    Diagnosis,
    Driver,
    Entity,
    Finding,
    severity_of_loss,
)
from fabricobs.diagnosis.model import lines_of, load_models
from fabricobs.exceptions import UserError
from fabricobs.notebook import table
from fabricobs.printing import escaped
from fabricobs.report import documents, wording
from fabricobs.report.counter_readings import CounterReadings
from fabricobs.report.evidence_rows import (
    NIC_NAMES,
    EvidenceRows,
    cell_text,
    evidence_rows,
    names_nic,
    nic_aliases,
)
from fabricobs.report.layout import aligned, few, fitted_sql, labelled, listed, wrapped
from fabricobs.report.source_files import NAMES, SourceFiles
from fabricobs.report.source_input import SourceInput, source_input
from fabricobs.store.session import NO_SITE, Site, open_session, tables_reached

_MOST_ROWS = 12
_MOST_LETTERS = 40  # of a cell
_MOST_SUGGESTED = 5
_ID = re.compile(r"[0-9a-f]{0,12}", re.IGNORECASE)


Judge = Callable[[], Diagnosis]


class UnknownFindingError(UserError):
    """No finding, or several, of that id."""


def known_findings(kept: Sequence[Finding], judge: Judge) -> list[Finding]:
    """Return the findings kept in the store, or those of a diagnosis made now where none is."""
    return list(kept or judge().findings)


def find_finding(wanted: str, kept: Sequence[Finding], judge: Judge) -> Finding:
    """Return the finding whose id begins so: a kept one, else one of a diagnosis made now.

    What cannot be an id asks no diagnosis, which takes long.
    UnknownFindingError names the nearest ids.
    """
    is_id = _ID.fullmatch(wanted) is not None
    known = list(kept)
    if is_id and not _begins(wanted, kept):
        known += judge().findings
    fitting = {finding.id: finding for finding in reversed(_begins(wanted, known))}
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    if fitting:
        raise UnknownFindingError(f"{wanted}: several findings begin so:\n{_named(known, fitting)}")
    ids = {finding.id: None for finding in known}
    near = difflib.get_close_matches(wanted, ids, n=_MOST_SUGGESTED, cutoff=0) or list(ids)
    none = "and nothing is found in this store" if is_id else "which is 12 of 0-9 and a-f"
    told = f"; there are:\n{_named(known, near)}" if ids else f", {none}"
    raise UnknownFindingError(f"{wanted}: no finding of that id{told}")


def _begins(wanted: str, findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.id.startswith(wanted.lower())]


def _named(findings: Sequence[Finding], ids: Sequence[str] | dict[str, Finding]) -> str:
    titles = {finding.id: finding.title for finding in findings}
    return "\n".join(f"  {id_}  {escaped(titles[id_])}" for id_ in ids)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A finding with what it rests on: the SQL behind it, its rows, and those about the culprits.

    `rows` is None where the store's text is no query of this installation: it is never run.
    `source` is where the input tells of the culprits in its time.
    """

    finding: Finding
    sql: str | None
    rows: EvidenceRows | None
    source: SourceInput = field(default_factory=SourceInput)

    @property
    def about(self) -> pl.DataFrame | None:
        """The rows that name the culprits, all rows where none does; None where none were asked."""
        return None if self.rows is None else self.rows.about

    def __str__(self) -> str:
        """Return it as the command line prints it."""
        return explanation_text(self)

    @property
    def with_sql(self) -> str:
        """The text with the SQL that gives the rows."""
        return "\n\n".join(part for part in (explanation_text(self), _sql_text(self)) if part)

    def _repr_html_(self) -> str:
        blocks = [self.finding._repr_html_()]
        if self.about is not None:
            blocks.append(table(self.about.columns, self.about.head(_MOST_ROWS).iter_rows()))
        if self.sql:
            blocks.append(f"<pre>{escape(self.sql.strip())}</pre>")
        return "".join(blocks)


def explain(
    finding: Finding, store: Path, extra: Sequence[Path] = (), *, site: Site = NO_SITE
) -> Explanation:
    """Return a finding with its SQL and the rows that the store gives for it now."""
    query = documents.query_of(finding.query, extra)
    if query is None:
        return Explanation(finding, finding.query, None)
    sql = query.sql
    of_nic = names_nic(finding)
    proving = lines_of(finding.kind, load_models(extra).values())
    tables = [f"FROM {table};" for table in proving]
    asked = "\n".join([sql, *([NIC_NAMES] if of_nic else []), NAMES, *tables])
    with open_session(store, asked, extra, keep=True, site=site) as connection:
        aliases = nic_aliases(connection.sql(NIC_NAMES).pl()) if of_nic else {}
        rows = evidence_rows(finding, sql, connection.sql(sql).pl(), aliases)
        reached = tables_reached(connection, sql, extra)
        source = source_input(connection, finding, query, reached, rows, aliases, proving)
        return Explanation(finding, sql, rows, source)


def explanation_text(explanation: Explanation) -> str:
    """Return a finding in full, with the rows that are about it and where the input tells it."""
    finding = explanation.finding
    blocks = [
        wrapped(finding.title, f"{finding.id}  "),
        "\n".join(_facts(finding)),
        wrapped(finding.explanation, "  ") if finding.explanation else "",
        _drivers_text(finding.drivers),
        "\n".join(listed("What would disprove it", finding.refuted_by)),
        "\n".join(listed("Next steps", finding.next_steps)),
    ]
    if explanation.rows is not None:
        query = "its SQL" if explanation.sql == finding.query else finding.query
        blocks.append(_rows_text(explanation.rows, query))
    if explanation.source.readings:
        blocks.append(_readings_text(explanation.source.readings))
    if explanation.source.files:
        blocks.append(_files_text(explanation.source.files))
    if explanation.sql:
        told = f"`fabricobs explain {finding.id} --sql` shows the SQL that gives these rows."
        blocks.append(wrapped(told, "  "))
    return "\n\n".join(block for block in blocks if block)


def _sql_text(explanation: Explanation) -> str:
    sql, query = explanation.sql, explanation.finding.query
    if not sql:
        return ""
    return f"  SQL{f' ({query})' if query != sql else ''}\n{fitted_sql(sql, indent=4)}"


def _facts(finding: Finding) -> list[str]:
    lines = [
        labelled("kind", finding.kind),
        labelled("severity", _severity_words(finding)),
        labelled("confidence", wording.confidence_words(finding)),
        labelled("since", wording.since_words(finding)),
        labelled("until", wording.until_words(finding)),
        *([labelled("in bursts", told)] if (told := wording.bursts_words(finding)) else []),
        *([labelled("detectable", told)] if (told := wording.detected_words(finding)) else []),
        labelled("cost", wording.cost_words(finding)),
        labelled(wording.culprits_word(finding), _all(finding.entities) or "none named"),
    ]
    for count, names in wording.names_by_type(finding.related).items():
        lines.append(labelled("affected", f"{count}: {few(names)}"))
    return lines


def _severity_words(finding: Finding) -> str:
    by_loss = severity_of_loss(finding.loss_share)
    if finding.loss_share is None or by_loss == "info":
        return finding.severity
    if by_loss == finding.severity:
        return f"{finding.severity}, by the share of throughput lost"
    if SEVERITIES.index(finding.severity) > SEVERITIES.index(by_loss):
        return finding.severity
    if finding.loss_shared_with:
        return f"{finding.severity}, for other causes may have cost all of it"
    if finding.state == "over":
        return f"{finding.severity}, for it is over and weighs by what the run lost"
    no_part = all(entity.type == "job" for entity in finding.entities)
    return f"{finding.severity}, for no part is at fault" if no_part else finding.severity


def _all(entities: Sequence[Entity]) -> str:
    return ", ".join(entity.label for entity in entities)


def _drivers_text(drivers: Sequence[Driver]) -> str:
    if not drivers:
        return ""
    rows = [("  What it rests on", "value", "expected", "robust z", "threshold")]
    for driver in drivers:
        value, peer, threshold = wording.driver_words(driver)
        z = wording.number(driver.robust_z)
        rows.append((f"    {escaped(driver.feature)}", value, peer, z, threshold))
    lines = [aligned(rows)]
    features: dict[str, list[str]] = {}
    for each in drivers:
        features.setdefault(each.source, []).append(each.feature)
    sources = [f"{'; '.join(features[source])}: {source}" for source in features if source]
    lines.extend(listed("Sources of the thresholds", sources))
    return "\n".join(lines)


def _rows_text(rows: EvidenceRows, query: str) -> str:
    if rows.about.is_empty():
        return "  No rows: its query gives none for what the store holds now."
    count = len(rows.about)
    title = f"Rows of {query} about it, {min(count, _MOST_ROWS)} of {count:,}"
    if rows.before:
        title += "; the first window is from before it"
    if rows.after:
        title += "; the last window reaches beyond its end"
    if rows.of_all_time:
        title += "; over all the data, the time before and after it, too"
    if not rows.condition:
        title = f"Rows of {query}, none of them about it by name; {count:,} in all"
    shown = rows.shown(_MOST_ROWS)
    table = [tuple(shown.columns), *(tuple(map(_cell, row)) for row in shown.iter_rows())]
    return f"{wrapped(title, '  ')}\n{aligned(table, indent=4)}"


def _readings_text(readings: Sequence[CounterReadings]) -> str:
    lines = ["  Counters in the input: two readings, as it begins"]
    for each in readings:
        lines.append(wrapped(each.words, "    ", hang=6))
        values = [f"{reading.value:,}" for reading in (each.before, each.later)]
        wide = max(map(len, values))
        for value, reading in zip(values, (each.before, each.later), strict=True):
            lines.append(f"      {value:>{wide}}  at {wording.utc(reading.ts)}")
            lines.append(f"      {'':{wide}}  {escaped(reading.place)}")
            lines += [wrapped(reading.text, " " * (wide + 8))] if reading.text else []
    return "\n".join(lines)


def _files_text(files: Sequence[SourceFiles]) -> str:
    lines = ["  Lines of the input, by kind of file"]
    for each in files:
        lines.append(wrapped(each.words, "    ", hang=6))
        for what, place, text in each.lines:
            lines += [wrapped(f"{what}:", "      ")] if what else []
            lines += [f"        {escaped(place)}", *([wrapped(text, " " * 8)] if text else [])]
    return "\n".join(lines)


def _cell(value: object) -> str:
    return escaped(cell_text(value))[:_MOST_LETTERS]
