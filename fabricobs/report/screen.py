"""The first screen of a diagnosis in a terminal: what fits 40 lines of 100 columns.

Verdict and loss, a line for each answer, the worst findings with what to do first, the data. All
the rest is `--verbose` and `explain`.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabricobs.diagnosis.jobs import with_problem
from fabricobs.printing import escaped
from fabricobs.report import wording
from fabricobs.report.jobs import name_of, restarts
from fabricobs.report.layout import few, in_line, listed, width, wrapped

if TYPE_CHECKING:
    from fabricobs.diagnosis.findings import Coverage, Diagnosis, Finding, JobVerdict, Question

_MOST_TOLD = 2  # findings with when, cost and first step
_MOST_NAMED = 3  # more of them, a line each
_MOST_JOBS = 4
# What a screen needs of the data; `--verbose` shows all facts.
_FACTS = frozenset({"files", "ranks", "steps", "ports", "from", "to", "times"})
_ASIDE = re.compile(r" \([^()]*\)")
_SENTENCE = re.compile(r"(?<=[a-z)0-9])\. (?=[A-Z])")
# Behind these an answer that is ok says what would have shown, and of which other parts it holds.
_DETAIL = re.compile(r"(?:: |; )")


def summary_text(found: "Diagnosis") -> str:
    """Return what fits a screen: verdict, answers, findings and first steps, the data."""
    lost = wording.loss_words(found)
    sentence = wrapped(found.verdict.sentence)
    blocks = [
        f"{sentence}\n{wrapped(lost)}" if lost else sentence,
        _jobs(found) if found.jobs else _answers(found.verdict.questions, found.findings),
        _findings(found.findings) if found.findings else none_found(found),
        *failures(found),
        _data(found.coverage),
    ]
    return "\n\n".join(blocks)


def none_found(found: "Diagnosis") -> str:
    """Say that there are no findings, and whether anything could be judged."""
    if not found.verdict.judged:
        return "No findings: too little data to diagnose."
    return "No findings. `--verbose` shows what would have been seen."


def failures(found: "Diagnosis") -> list[str]:
    """Return the parts that failed as a block of text; nothing where none did."""
    lines = listed("Failed, please report it", list(map(str, found.failures)))
    return ["\n".join(lines)] if lines else []


def short_answer(question: "Question", findings: Sequence["Finding"]) -> str:
    """Return an answer's first sentence; of an ok one, what is well without what would show.

    What a finding tells is told there: its answer names the part and the id.
    """
    for finding in findings:
        if question.answer == "problem" and f"{finding.title}." in question.evidence:
            return f"{_who(finding)} ({finding.id})."
    first = _SENTENCE.split(in_line(question.evidence), maxsplit=1)[0].rstrip(".")
    if question.answer == "ok":
        first = _DETAIL.split(_ASIDE.sub("", first), maxsplit=1)[0]
    provide = question.answer == "unknown" and question.settled_by
    return f"{first}.{f' Provide: {question.settled_by}' if provide else ''}"


def _who(finding: "Finding") -> str:
    """Return the parts that a finding names; of one that names a job alone how that is."""
    parts = [entity.label for entity in finding.entities if entity.type != "job"]
    return few(parts) if parts else finding.first_clause


def _answers(questions: Sequence["Question"], findings: Sequence["Finding"]) -> str:
    lines = ["Questions"]
    for question in questions:
        label = f"  {question.answer:<9}"
        text = short_answer(question, findings)
        if question is questions[0] and question.answer == "problem":
            text = _with_culprits(text, findings)
        lines.append(wrapped(f"{question.question} {text}", label))
    return "\n".join(lines)


def _with_culprits(text: str, findings: Sequence["Finding"]) -> str:
    """Add to what is lost who costs it, where the answer names none."""
    costly = [f for f in findings if f.loss_share and f.severity != "info"]
    parts = [f for f in costly if any(entity.type != "job" for entity in f.entities)]
    if ")." in text or not parts:
        return text
    told = text.rstrip(".")
    if len(parts) == 1 and told.endswith(wording.part_words(parts[0])):
        return f"{told} ({parts[0].id})."
    return f"{told}: {few([f'{wording.part_words(f)} ({f.id})' for f in parts])}."


def _jobs(found: "Diagnosis") -> str:
    """Return the jobs that have a problem, the worst first, and how many have none."""
    jobs, top = found.jobs, found.verdict.sentence
    sick = with_problem(jobs, found.findings)
    named = [each for each, _ in sick]
    others = [each for each in jobs if each not in named]
    sound = [each for each in others if each.verdict.judged]
    lines = ["Jobs"]
    for each, ids in sick[:_MOST_JOBS]:
        lost = wording.amount_words(each.loss)
        shown = [] if each.verdict.sentence in top else [each.verdict.sentence]
        told = shown if each.verdict.judged else [f"see {', '.join(ids)}."]
        told += [f"Lost over its run: {lost}."] if lost else []
        told = told or ["see above."]
        lines.append(wrapped(f"{name_of(each.run)}: {' '.join(told)}", "  ", hang=4))
        lines += [
            wrapped(
                f"{question.question} {short_answer(question, found.findings)}",
                f"    {'problem':<9}",
            )
            for question in _problems(each)
            if question.evidence.rstrip(".") not in each.verdict.sentence
        ]
    lines += _others(f"no problem{_open_words(sound)}", sound)
    lines += _others("more with a problem", named[_MOST_JOBS:])
    lines += _others("too little is known", [e for e in others if not e.verdict.judged])
    again = restarts([each.run for each in jobs])
    lines += [wrapped(each, "  ", hang=4) for each in again[:_MOST_JOBS]]
    if len(again) > _MOST_JOBS:
        lines.append(f"  {wording.counted(len(again) - _MOST_JOBS, 'more restart')}: `--verbose`.")
    name = "NAME#1" if any(each.run.number > 1 for each in jobs) else "NAME"
    lines.append(wrapped(f"`--job {name}` shows the answers of one, `--verbose` of all.", "  "))
    return "\n".join(lines)


def _problems(each: "JobVerdict") -> list["Question"]:
    return [question for question in each.verdict.questions if question.answer == "problem"]


def _open_words(sound: Sequence["JobVerdict"]) -> str:
    """Say of how many questions about the jobs without a problem the answer is not known."""
    counts = [sum(q.answer == "unknown" for q in e.verdict.questions) for e in sound]
    if not any(counts):
        return ""
    least, most = min(counts), max(counts)
    number = f"{most}" if least == most else f"{least} to {most}"
    return f" in what can be judged, {number} of {len(sound[0].verdict.questions)} questions open"


def _others(what: str, jobs: Sequence["JobVerdict"]) -> list[str]:
    named = few([name_of(each.run) for each in jobs])
    one = "run" if len({each.run.name for each in jobs}) < len(jobs) else "job"
    told = f"{wording.counted(len(jobs), one)}, {what}: {named}"
    return [wrapped(told, "  ", hang=4)] if jobs else []


def _findings(findings: Sequence["Finding"]) -> str:
    """Return the worst findings: what, since when, cost, first step, id; the others a line each."""
    serious = [finding for finding in findings if finding.severity != "info"]
    told, named = serious[:_MOST_TOLD], serious[_MOST_TOLD : _MOST_TOLD + _MOST_NAMED]
    lines = ["Findings"]
    for finding in told:
        label = f"  {finding.severity:<9}"
        rest = " " * len(label)
        cost = wording.cost_words(finding)
        costs = "cost" if finding.state == "over" else "costs"
        when = f"{finding.id}: {wording.standing_words(finding)}; {costs} {cost}"
        lines += [wrapped(finding.title, label), wrapped(when, rest)]
        lines += [wrapped(f"First step: {step}", rest) for step in finding.next_steps[:1]]
    lines += map(_in_a_line, named)
    left = Counter(f.severity for f in findings if f not in told and f not in named)
    if left:
        counted = ", ".join(f"{number:,} {severity}" for severity, number in left.items())
        lines.append(wrapped(f"and {counted}: `fabricobs explain` lists them", "  "))
    shows = "`fabricobs explain ID` shows a finding and its rows, `--verbose` all answers in full."
    return "\n".join([*lines, wrapped(shows, "  ")])


def _in_a_line(finding: "Finding") -> str:
    """Return severity, id and cost of a finding, and as much of its title as the line holds."""
    lost = f"{finding.lost}  " if finding.lost else ""
    label = f"  {finding.severity:<9}{finding.id}  {lost}"
    title = escaped(in_line(finding.title))
    return label + textwrap.shorten(title, max(width() - len(label), 20), placeholder=" ...")


def _data(coverage: "Coverage") -> str:
    facts = [f"{name} {value}" for name, value in coverage.facts if name in _FACTS]
    lines = ["Data", wrapped("; ".join(facts) or "nothing counted", "  ")]
    if coverage.missing:
        lines.append(wrapped("; ".join(coverage.missing), "  missing: "))
    return "\n".join(lines)
