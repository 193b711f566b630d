"""A diagnosis as text for the terminal."""

import shlex
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabricobs.printing import escaped
from fabricobs.report import documents
from fabricobs.report.jobs import jobs_text
from fabricobs.report.layout import (
    aligned,
    few,
    labelled,
    listed,
    wrapped,
)

if TYPE_CHECKING:
    from fabricobs.diagnosis.findings import Coverage, Diagnosis, Driver, Finding, Question


def diagnosis_text(found: "Diagnosis") -> str:
    """Return a diagnosis for a terminal: verdict, answers, findings, what the data cover."""
    answers = "\n".join(["Questions", *(_question_text(q) for q in found.verdict.questions)])
    blocks = [
        wrapped(found.verdict.sentence),
        jobs_text(found.jobs) if found.jobs else answers,
        *(_finding_text(finding) for finding in found.findings),
    ]
    if not found.findings:
        blocks.append(
            "No findings." if found.verdict.judged else "No findings: too little data to diagnose."
        )
    if found.what_if:
        blocks.append(
            "\n".join(listed("What if", [documents.what_if_words(each) for each in found.what_if]))
        )
    if found.failures:
        blocks.append("\n".join(listed("Failed, please report it", list(map(str, found.failures)))))
    blocks.append(_coverage_text(found.coverage))
    return "\n\n".join(blocks)


def _question_text(question: "Question") -> str:
    label = f"  {question.answer:<9}"
    lines = [wrapped(f"{question.question} {question.evidence}", label)]
    if question.answer == "unknown" and question.settled_by:
        lines.append(wrapped(f"To answer this, provide: {question.settled_by}", " " * len(label)))
    return "\n".join(lines)


def _finding_text(finding: "Finding") -> str:
    """Return one finding: headline, facts, numbers, what to do, what would refute it."""
    since = documents.moment_words(finding.start, finding.start_step)
    until = documents.moment_words(finding.end, finding.end_step)
    parts = [
        wrapped(finding.title, f"[{finding.severity} {finding.confidence:.2f}] ", hang=2),
        labelled("id", f"{finding.id}; `fabricobs explain {finding.id}` shows all details"),
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
    parts.extend(listed("What would disprove it", finding.refuted_by))
    if finding.query:
        parts.append(labelled("query", _query_command(finding.query)))
    return "\n".join(parts)


def _driver_table(drivers: Sequence["Driver"]) -> str:
    rows = [("feature", "value", "expected", "threshold")]
    for driver in drivers:
        numbers = (driver.value, driver.peer, driver.threshold)
        value, peer, threshold = (documents.number(n, driver.unit) for n in numbers)
        rows.append((escaped(driver.feature), value, peer, threshold))
    return textwrap.indent(aligned(rows), "    ")


def _coverage_text(coverage: "Coverage") -> str:
    facts = "; ".join(f"{name} {value}" for name, value in coverage.facts)
    lines = ["Data", wrapped(facts or "nothing counted", "  ")]
    if coverage.missing:
        lines.append(wrapped("; ".join(coverage.missing), "  missing: "))
    if coverage.breaks:
        told = [
            f"{b.device} {b.counter} {b.what} on {documents.counted(b.ports, 'port')}, "
            f"{documents.counted(b.times, 'time')}"
            for b in coverage.breaks
        ]
        lines.append(wrapped(few(told), "  counters that fell, wrapped or stopped: ", hang=2))
    return "\n".join(lines)


def _query_command(query: str) -> str:
    """Return the command that shows the rows: a question by its name, other SQL as it is."""
    verb = "sql" if any(character.isspace() for character in query) else "query"
    return f"fabricobs {verb} {shlex.quote(query)}"
