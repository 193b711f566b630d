"""What the terminal shows: the account of an ingest, and a diagnosis as text."""

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fabricobs.formats.trial import Trial
from fabricobs.ingest import IngestReport
from fabricobs.planning import FileOutcome
from fabricobs.report import documents
from fabricobs.report.layout import (
    MOST_NAMED,
    aligned,
    few,
    labelled,
    listed,
    printable,
    wrapped,
)

if TYPE_CHECKING:
    from fabricobs.diagnosis.findings import Coverage, Diagnosis, Driver, Finding, Question

_MOST_SHAPES = 3


def ingest_table(report: IngestReport) -> str:
    """Return the account of an ingest: a line a format, then what stayed unread."""
    by_format: dict[str, list[FileOutcome]] = {}
    for outcome in report.read:
        by_format.setdefault(" + ".join(outcome.formats), []).append(outcome)
    rows: list[tuple[str, ...]] = [
        ("format", "files", "lines", "parsed", "ignored", "unread", "rows", "from", "to")
    ]
    for name, outcomes in sorted(by_format.items()):
        rows.append((name, *(f"{n:,}" for n in _sums(outcomes)), *_span(outcomes)))
    rows.append(("all", *(f"{n:,}" for n in _sums(report.read)), *_span(report.read)))
    lines = [aligned(rows)]
    unchanged = sum(outcome.unchanged for outcome in report.outcomes)
    if unchanged:
        lines.append(f"{unchanged:,} files were in the store already and have not changed.")
    lines.extend(_unread(report.read))
    lines.extend(_named("not recognised", report.unrecognised))
    lines.extend(_shapes(report.outcomes))
    return "\n".join(lines)


def _span(outcomes: Sequence[FileOutcome]) -> tuple[str, str]:
    """Return first and last time of the rows of some files, as text."""
    spans = [outcome.span for outcome in outcomes if outcome.span is not None]
    if not spans:
        return "", ""
    first, last = min(span[0] for span in spans), max(span[1] for span in spans)
    return f"{first:%Y-%m-%d %H:%M:%S}", f"{last:%Y-%m-%d %H:%M:%S}"


def _shapes(outcomes: Sequence[FileOutcome]) -> list[str]:
    """Return the most frequent shapes of lines no format claims: what is worth a definition."""
    counted: Counter[str] = Counter()
    for outcome in outcomes:
        counted.update(dict(outcome.shapes))
    if not counted:
        return []
    return [
        "Most frequent among the lines no format claims (`fabricobs formats new` begins one):",
        *(f"  {count:6,} x  {shape}" for shape, count in counted.most_common(_MOST_SHAPES)),
    ]


def _sums(outcomes: Sequence[FileOutcome]) -> tuple[int, ...]:
    return (
        len(outcomes),
        sum(o.lines for o in outcomes),
        sum(o.parsed for o in outcomes),
        sum(o.ignored for o in outcomes),
        sum(o.unparsed for o in outcomes),
        sum(o.rows for o in outcomes),
    )


def _unread(outcomes: Iterable[FileOutcome]) -> list[str]:
    lines = []
    for outcome in outcomes:
        missed = outcome.unparsed - outcome.unclaimed
        if missed and outcome.first_unread is not None:
            number, reason, text = outcome.first_unread
            lines.append(
                f"{outcome.path}:{number}: {missed:,} lines unread; {reason}: {text[:100]}"
            )
        if outcome.unused:
            lines.append(f"{outcome.path}: columns without a use: {', '.join(outcome.unused[:8])}")
    return [*lines[:MOST_NAMED], *_and_more(lines)]


def _named(title: str, outcomes: Sequence[FileOutcome]) -> list[str]:
    lines = [f"{outcome.path}: {title}: {outcome.unrecognised}" for outcome in outcomes]
    return [*lines[:MOST_NAMED], *_and_more(lines)]


def _and_more(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MOST_NAMED
    return [f"... and {more:,} more; see tables `files` and `unparsed`"] if more > 0 else []


def diagnosis_text(found: "Diagnosis") -> str:
    """Return a diagnosis for a terminal: verdict, six answers, findings, what the data cover."""
    blocks = [
        wrapped(found.verdict.sentence),
        "\n".join(["Six questions", *(_question_text(q) for q in found.verdict.questions)]),
        *(_finding_text(finding) for finding in found.findings),
    ]
    if not found.findings:
        blocks.append(
            "No findings."
            if found.verdict.judged
            else "No findings: the store holds too little to judge."
        )
    blocks.append(_coverage_text(found.coverage))
    return "\n\n".join(blocks)


def _question_text(question: "Question") -> str:
    label = f"  {question.answer:<9}"
    lines = [wrapped(f"{question.question} {question.evidence}", label)]
    if question.answer == "unknown" and question.settled_by:
        lines.append(wrapped(f"Settled by: {question.settled_by}", " " * len(label)))
    return "\n".join(lines)


def _finding_text(finding: "Finding") -> str:
    """Return one finding: headline, facts, numbers, what to do, what would refute it."""
    since = documents.moment_words(finding.start, finding.start_step)
    until = documents.moment_words(finding.end, finding.end_step)
    parts = [
        wrapped(finding.title, f"[{finding.severity} {finding.confidence:.2f}] ", hang=2),
        labelled("id", f"{finding.id}; `fabricobs explain {finding.id}` tells all"),
        labelled("since", since),
        labelled("until", until),
        labelled("cost", documents.cost_words(finding)),
        labelled("culprits", few([entity.label for entity in finding.entities]) or "none named"),
    ]
    for count, names in documents.by_type(finding.related).items():
        parts.append(labelled("affected", f"{count}: {few(names)}"))
    if finding.explanation:
        parts.append(wrapped(finding.explanation, "  "))
    if finding.drivers:
        parts.append(_driver_table(finding.drivers))
    parts.extend(listed("Next steps", finding.next_steps))
    parts.extend(listed("It would be refuted by", finding.refuted_by))
    if finding.query:
        parts.append(labelled("query", _query_command(finding.query)))
    return "\n".join(parts)


def _driver_table(drivers: Sequence["Driver"]) -> str:
    rows = [("feature", "value", "peer", "threshold")]
    for driver in drivers:
        numbers = (driver.value, driver.peer, driver.threshold)
        value, peer, threshold = (documents.number(n, driver.unit) for n in numbers)
        rows.append((printable(driver.feature), value, peer, threshold))
    return textwrap.indent(aligned(rows), "    ")


def _coverage_text(coverage: "Coverage") -> str:
    facts = "; ".join(f"{name} {value}" for name, value in coverage.facts)
    lines = ["Data", wrapped(facts or "nothing counted", "  ")]
    if coverage.missing:
        lines.append(wrapped("; ".join(coverage.missing), "  missing: "))
    return "\n".join(lines)


def _query_command(query: str) -> str:
    """Return the command that shows the rows: a question by its name, other SQL as it is."""
    verb = "sql" if any(character.isspace() for character in query) else "query"
    return f"fabricobs {verb} {shlex.quote(query)}"


def trial_text(trial: Trial, most: int) -> str:
    """Return what a format made of a file: rows by table, unread lines, and the account."""
    lines: list[str] = []
    for table, rows in sorted(trial.rows.items()):
        lines.append(f"{table}: {len(rows):,} rows")
        lines.extend(
            "  " + ", ".join(f"{name} {value}" for name, value in row.items())
            for row in rows[:most]
        )
    tally = trial.tally
    lines.append(
        f"{tally.lines:,} lines: {tally.parsed:,} parsed, {tally.ignored:,} ignored, "
        f"{tally.unparsed:,} unread"
    )
    for number, reason, text in (*tally.samples, *tally.unclaimed_samples)[:most]:
        lines.append(f"  line {number}: {reason}: {text[:100]}")
    if trial.problem:
        lines.append(trial.problem)
    return "\n".join(lines)
