"""A diagnosis as text for the terminal, and what a format made of a file."""

import shlex
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabricobs.formats.trial import Trial
from fabricobs.report import documents
from fabricobs.report.account import aligned

if TYPE_CHECKING:
    from fabricobs.diagnosis.findings import Coverage, Diagnosis, Driver, Finding, Question

_MOST_NAMED = 5
_WIDTH = 100
_LABEL_WIDTH = 12


def diagnosis_text(found: "Diagnosis") -> str:
    """Return a diagnosis for a terminal: verdict, six answers, findings, what the data cover."""
    blocks = [
        _wrapped(found.verdict.sentence),
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
    lines = [_wrapped(f"{question.question} {question.evidence}", label)]
    if question.answer == "unknown" and question.settled_by:
        lines.append(_wrapped(f"Settled by: {question.settled_by}", " " * len(label)))
    return "\n".join(lines)


def _finding_text(finding: "Finding") -> str:
    """Return one finding: headline, facts, numbers, what to do, what would refute it."""
    since = documents.moment_words(finding.start, finding.start_step)
    until = documents.moment_words(finding.end, finding.end_step)
    parts = [
        _wrapped(finding.title, f"[{finding.severity} {finding.confidence:.2f}] ", hang=2),
        _labelled("since", since),
        _labelled("until", until),
        _labelled("cost", documents.cost_words(finding)),
        _labelled("culprits", _few([entity.label for entity in finding.entities]) or "none named"),
    ]
    for count, names in documents.by_type(finding.related).items():
        parts.append(_labelled("affected", f"{count}: {_few(names)}"))
    if finding.explanation:
        parts.append(_wrapped(finding.explanation, "  "))
    if finding.drivers:
        parts.append(_driver_table(finding.drivers))
    parts.extend(_listed("Next steps", finding.next_steps))
    parts.extend(_listed("It would be refuted by", finding.refuted_by))
    if finding.query:
        parts.append(_labelled("query", _query_command(finding.query)))
    return "\n".join(parts)


def _driver_table(drivers: Sequence["Driver"]) -> str:
    rows = [("feature", "value", "peer", "threshold")]
    for driver in drivers:
        numbers = (driver.value, driver.peer, driver.threshold)
        value, peer, threshold = (documents.number(n, driver.unit) for n in numbers)
        rows.append((_printable(driver.feature), value, peer, threshold))
    return textwrap.indent(aligned(rows), "    ")


def _coverage_text(coverage: "Coverage") -> str:
    facts = "; ".join(f"{name} {value}" for name, value in coverage.facts)
    lines = ["Data", _wrapped(facts or "nothing counted", "  ")]
    if coverage.missing:
        lines.append(_wrapped("; ".join(coverage.missing), "  missing: "))
    return "\n".join(lines)


def _query_command(query: str) -> str:
    """Return the command that shows the rows: a question by its name, other SQL as it is."""
    verb = "sql" if any(character.isspace() for character in query) else "query"
    return f"fabricobs {verb} {shlex.quote(query)}"


def _few(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    return ", ".join(names[:_MOST_NAMED]) + rest


def _labelled(label: str, text: str) -> str:
    return _wrapped(text, f"  {label:<{_LABEL_WIDTH}}")


def _listed(title: str, items: Sequence[str]) -> list[str]:
    return [f"  {title}", *(_wrapped(item, "    - ") for item in items)] if items else []


def _wrapped(text: str, lead: str = "", hang: int | None = None) -> str:
    """Return the text in lines of the terminal's width, the first led by `lead`."""
    return textwrap.fill(
        _printable(text),
        _WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * (len(lead) if hang is None else hang),
        break_on_hyphens=False,
    )


def _printable(text: str) -> str:
    """Return text that cannot move the cursor or colour the screen: log text may hold escapes."""
    return "".join(c if c.isprintable() else " " for c in text)


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
