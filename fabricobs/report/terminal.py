"""A diagnosis as text for the terminal, in full; `screen.py` has the first screen of it."""

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabricobs.printing import escaped
from fabricobs.report import wording
from fabricobs.report.jobs import jobs_text
from fabricobs.report.layout import aligned, few, labelled, listed, wrapped
from fabricobs.report.screen import failures, none_found

if TYPE_CHECKING:
    from fabricobs.diagnosis.findings import Coverage, Diagnosis, Driver, Finding, Question


# The words that begin an answer or a finding, and their colours (ANSI).
_COLOURS = {
    "problem": 31, "critical": 31, "high": 31, "medium": 33, "low": 33, "unknown": 33, "ok": 32,
}  # fmt: skip
_COLOURED = re.compile(rf"^(\s*\[?|[0-9a-f]{{12}}  )({'|'.join(_COLOURS)})\b", re.MULTILINE)


def in_colour(text: str) -> str:
    """Return a diagnosis with the words that begin answers and findings in colour."""
    return _COLOURED.sub(lambda m: f"{m[1]}\x1b[{_COLOURS[m[2]]}m{m[2]}\x1b[0m", text)


def diagnosis_text(found: "Diagnosis") -> str:
    """Return all of a diagnosis: verdict, answers, findings in full, what the data cover."""
    blocks = [
        *_verdict_blocks(found),
        *(_finding_text(finding) for finding in found.findings if finding.severity != "info"),
        *([] if found.findings else [none_found(found)]),
    ]
    seen = [wording.seen_words(f) for f in found.findings if f.severity == "info"]
    if seen:
        blocks.append("\n".join(listed(wording.SEEN, seen)))
    if found.what_if:
        blocks.append(
            "\n".join(listed("What if", [wording.what_if_words(each) for each in found.what_if]))
        )
    return "\n\n".join([*blocks, *failures(found), _coverage_text(found.coverage)])


def _verdict_blocks(found: "Diagnosis") -> list[str]:
    answers = "\n".join(["Questions", *(_question_text(q) for q in found.verdict.questions)])
    lost = wording.loss_words(found)
    sentence = wrapped(found.verdict.sentence)
    return [
        f"{sentence}\n{wrapped(lost)}" if lost else sentence,
        jobs_text(found.jobs, found.findings) if found.jobs else answers,
    ]


def _question_text(question: "Question") -> str:
    label = f"  {question.answer:<9}"
    lines = [wrapped(f"{question.question} {question.evidence}", label)]
    if question.answer == "unknown" and question.settled_by:
        lines.append(wrapped(f"To answer this, provide: {question.settled_by}", " " * len(label)))
    return "\n".join(lines)


def _finding_text(finding: "Finding") -> str:
    """Return one finding: headline, facts, numbers, what to do, what would disprove it."""
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
    for count, names in wording.names_by_type(finding.related).items():
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
    rows += [(escaped(driver.feature), *wording.driver_words(driver)) for driver in drivers]
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
