"""A diagnosis as Markdown for a ticket: what the page says, without its script and its charts.

Text of logs is escaped: it becomes no heading, link, image or markup.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from fabricobs.diagnosis.findings import (
    Coverage,
    Diagnosis,
    Driver,
    Finding,
    JobVerdict,
    Question,
)
from fabricobs.printing import escaped
from fabricobs.report import documents, wording
from fabricobs.report.charts.source import Row
from fabricobs.report.commands import parts_of
from fabricobs.report.jobs import facts_of, name_of
from fabricobs.report.layout import in_line
from fabricobs.report.markdown import bullets, code, page, table

_MOST_FINDINGS = 20
_MOST_NAMED = 20
_MOST_ROWS = 20
_MARKUP = re.compile(r"[\\`*\[\]<>|#~!&]|(?<!\w)_|_(?!\w)")


def ticket_text(
    diagnosis: Diagnosis,
    files: Sequence[Row] = (),
    images: Mapping[int, str] | None = None,
    extra: Sequence[Path] = (),
) -> str:
    """Return the diagnosis in Markdown; `images` are the charts of findings by number, from 1."""
    serious = [finding for finding in diagnosis.findings if finding.severity != "info"]
    findings = serious[:_MOST_FINDINGS]
    more = len(serious) - len(findings)
    seen = [f for f in diagnosis.findings if f.severity == "info"]
    nothing = "No findings." if diagnosis.verdict.judged else "The store holds too little to judge."
    return page(
        f"# {plain(diagnosis.verdict.sentence)}",
        plain(wording.loss_words(diagnosis)),
        table(("question", "answer", "evidence"), map(_question_row, diagnosis.verdict.questions)),
        table(("job", "what is known", "verdict"), map(_job_row, diagnosis.jobs))
        if diagnosis.jobs
        else "",
        "" if diagnosis.findings else nothing,
        *(
            _finding(number, finding, (images or {}).get(number), extra)
            for number, finding in enumerate(findings, start=1)
        ),
        f"{more:,} more findings are left out here." if more else "",
        f"## {wording.SEEN}" if seen else "",
        bullets(plain(wording.seen_words(each)) for each in seen[:_MOST_FINDINGS]),
        "## What if" if diagnosis.what_if else "",
        bullets(plain(wording.what_if_words(each)) for each in diagnosis.what_if),
        "## Failed, please report it" if diagnosis.failures else "",
        bullets(plain(str(failure)) for failure in diagnosis.failures),
        "## Data",
        _coverage(diagnosis.coverage),
        _files(files),
    )


def plain(text: str) -> str:
    """Return text of a log so that Markdown shows it as it is."""
    # A tracker mentions whoever stands behind an @, escaped or not.
    return _MARKUP.sub(lambda found: f"\\{found[0]}", escaped(in_line(text))).replace("@", "＠")


def _with_commands(text: str) -> str:
    """Return a text as Markdown: its commands are code."""
    return "".join(
        f"`{escaped(in_line(part))}`" if is_command else plain(part)
        for part, is_command in parts_of(text)
    )


def _question_row(question: Question) -> tuple[str, str, str]:
    settled = (
        f" To answer this, provide: {question.settled_by}" if question.answer == "unknown" else ""
    )
    answer = question.answer if question.answer == "ok" else f"**{question.answer}**"
    return question.question, answer, plain(question.evidence + settled)


def _job_row(each: JobVerdict) -> tuple[str, str, str]:
    return plain(name_of(each.run)), plain(facts_of(each.run)), plain(each.verdict.sentence)


def _finding(number: int, finding: Finding, image: str | None, extra: Sequence[Path]) -> str:
    facts = [
        ("Cost", wording.cost_words(finding)),
        ("Confidence", wording.confidence_words(finding)),
        ("Since", wording.since_words(finding)),
        ("Until", wording.until_words(finding)),
        (
            wording.culprits_word(finding).capitalize(),
            _few([entity.label for entity in finding.entities]) or "none named",
        ),
    ]
    for count, names in wording.names_by_type(finding.related).items():
        facts.append(("Affected", f"{count}: {_few(names)}"))
    sql = documents.query_sql(finding.query, extra)
    return page(
        f"## {number}. {plain(finding.title)}",
        f"**{finding.severity}**, {finding.kind.replace('_', ' ')}, `{finding.id}`",
        bullets(f"{name}: {plain(value)}" for name, value in facts),
        plain(finding.explanation),
        f"![Chart of finding {number}]({image})" if image else "",
        table(("feature", "value", "expected", "threshold"), map(_driver_row, finding.drivers))
        if finding.drivers
        else "",
        "**Next steps**" if finding.next_steps else "",
        "\n".join(f"- [ ] {_with_commands(step)}" for step in finding.next_steps),
        "**What would disprove it**" if finding.refuted_by else "",
        bullets(map(_with_commands, finding.refuted_by)),
        f"<details><summary>SQL of the evidence</summary>\n\n{code(sql, 'sql')}\n\n</details>"
        if sql
        else "",
    )


def _driver_row(driver: Driver) -> tuple[str, ...]:
    return plain(driver.feature), *map(plain, wording.driver_words(driver))


def _few(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _coverage(coverage: Coverage) -> str:
    breaks = [plain(wording.break_words(b)) for b in coverage.breaks[:_MOST_ROWS]]
    more = len(coverage.breaks) - len(breaks)
    return page(
        bullets(f"{name}: {plain(value)}" for name, value in coverage.facts),
        "Missing:" if coverage.missing else "",
        bullets(map(plain, coverage.missing)),
        "Counters that fell, wrapped or stopped:" if breaks else "",
        bullets([*breaks, *([f"{more:,} more"] if more else [])]),
    )


def _files(files: Sequence[Row]) -> str:
    if not files:
        return ""
    columns = ("files", "lines", "parsed", "ignored", "unread")
    rows = [
        (plain(row["format"] or "not recognised"), *(f"{row[name]:,}" for name in columns))
        for row in files
    ]
    return table(("format", *columns), rows)
