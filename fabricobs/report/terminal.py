"""A diagnosis as text for the terminal."""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabricobs.printing import escaped
from fabricobs.report import wording
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


_MOST_IN_SHORT = 6
# What a screen needs of the data; `--verbose` shows all facts.
_FACTS_IN_SHORT = frozenset({"files", "ranks", "steps", "ports", "from", "to"})
# The words that begin an answer or a finding, and their colours (ANSI).
_COLOURS = {
    "problem": 31, "critical": 31, "high": 31, "medium": 33, "low": 33, "unknown": 33, "ok": 32,
}  # fmt: skip
_COLOURED = re.compile(rf"^(\s*\[?|[0-9a-f]{{12}}  )({'|'.join(_COLOURS)})\b", re.MULTILINE)


def in_colour(text: str) -> str:
    """Return a diagnosis with the words that begin answers and findings in colour."""
    return _COLOURED.sub(lambda m: f"{m[1]}\x1b[{_COLOURS[m[2]]}m{m[2]}\x1b[0m", text)


def summary_text(found: "Diagnosis") -> str:
    """Return what fits a screen: verdict, answers, the findings and first steps, the data."""
    return "\n\n".join(
        [
            *_verdict_blocks(found),
            *([_findings_in_short(found.findings)] if found.findings else [_none_found(found)]),
            *_failures(found),
            _data_in_short(found.coverage),
        ]
    )


def diagnosis_text(found: "Diagnosis") -> str:
    """Return all of a diagnosis: verdict, answers, findings in full, what the data cover."""
    blocks = [
        *_verdict_blocks(found),
        *(_finding_text(finding) for finding in found.findings if finding.severity != "info"),
        *([] if found.findings else [_none_found(found)]),
    ]
    seen = [wording.seen_words(f) for f in found.findings if f.severity == "info"]
    if seen:
        blocks.append("\n".join(listed(wording.SEEN, seen)))
    if found.what_if:
        blocks.append(
            "\n".join(listed("What if", [wording.what_if_words(each) for each in found.what_if]))
        )
    return "\n\n".join([*blocks, *_failures(found), _coverage_text(found.coverage)])


def _verdict_blocks(found: "Diagnosis") -> list[str]:
    answers = "\n".join(["Questions", *(_question_text(q) for q in found.verdict.questions)])
    lost = wording.loss_words(found)
    sentence = wrapped(found.verdict.sentence)
    return [
        f"{sentence}\n{wrapped(lost)}" if lost else sentence,
        jobs_text(found.jobs) if found.jobs else answers,
    ]


def _none_found(found: "Diagnosis") -> str:
    return "No findings." if found.verdict.judged else "No findings: too little data to diagnose."


def _failures(found: "Diagnosis") -> list[str]:
    if not found.failures:
        return []
    return ["\n".join(listed("Failed, please report it", list(map(str, found.failures))))]


def _findings_in_short(findings: Sequence["Finding"]) -> str:
    """Return the worst findings in a few lines each: what, since when, cost, first step, id."""
    shown = [finding for finding in findings if finding.severity != "info"][:_MOST_IN_SHORT]
    lines = ["Findings"]
    for finding in shown:
        label = f"  {finding.severity:<9}"
        rest = " " * len(label)
        cost = wording.cost_words(finding)
        told = f"{finding.id}: {wording.standing_words(finding)}; costs {cost}"
        lines += [wrapped(finding.title, label), wrapped(told, rest)]
        lines += [wrapped(f"First step: {step}", rest) for step in finding.next_steps[:1]]
    left = Counter(finding.severity for finding in findings if finding not in shown)
    if left:
        counted = ", ".join(f"{number:,} {severity}" for severity, number in left.items())
        lines.append(wrapped(f"and {counted}: `fabricobs explain` lists them", "  "))
    lines.append(
        wrapped("`fabricobs explain ID` shows a finding in full, `--verbose` all findings.", "  ")
    )
    return "\n".join(lines)


def _data_in_short(coverage: "Coverage") -> str:
    facts = [f"{name} {value}" for name, value in coverage.facts if name in _FACTS_IN_SHORT]
    lines = ["Data", wrapped("; ".join(facts) or "nothing counted", "  ")]
    if coverage.missing:
        lines.append(wrapped("; ".join(coverage.missing), "  missing: "))
    return "\n".join(lines)


def _question_text(question: "Question") -> str:
    label = f"  {question.answer:<9}"
    lines = [wrapped(f"{question.question} {question.evidence}", label)]
    if question.answer == "unknown" and question.settled_by:
        lines.append(wrapped(f"To answer this, provide: {question.settled_by}", " " * len(label)))
    return "\n".join(lines)


def _finding_text(finding: "Finding") -> str:
    """Return one finding: headline, facts, numbers, what to do, what would refute it."""
    parts = [
        wrapped(finding.title, f"[{finding.severity} {finding.confidence:.2f}] ", hang=2),
        labelled("id", f"{finding.id}; `fabricobs explain {finding.id}` shows all details"),
        labelled("since", wording.since_words(finding)),
        labelled("until", wording.until_words(finding)),
        labelled("cost", wording.cost_words(finding)),
        labelled(
            wording.culprits_word(finding),
            few([entity.label for entity in finding.entities]) or "none named",
        ),
    ]
    for count, names in wording.by_type(finding.related).items():
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
        value, peer, threshold = (wording.number(n, driver.unit) for n in numbers)
        rows.append((escaped(driver.feature), value, peer, threshold))
    return aligned(rows, indent=4)


def _coverage_text(coverage: "Coverage") -> str:
    facts = "; ".join(f"{name} {value}" for name, value in coverage.facts)
    lines = ["Data", wrapped(facts or "nothing counted", "  ")]
    if coverage.missing:
        lines.append(wrapped("; ".join(coverage.missing), "  missing: "))
    if coverage.breaks:
        told = few([wording.break_words(broken) for broken in coverage.breaks])
        lines.append(wrapped(told, "  counters that fell, wrapped or stopped: ", hang=2))
    return "\n".join(lines)


def _query_command(query: str) -> str:
    """Return the command that shows the rows: a question by its name, other SQL as it is."""
    command = "sql" if any(character.isspace() for character in query) else "query"
    return f"fabricobs {command} {shlex.quote(query)}"
