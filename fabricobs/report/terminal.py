"""What the terminal shows: the account of an ingest, and a diagnosis as text."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fabricobs.ingest import FileOutcome, IngestReport

if TYPE_CHECKING:
    from fabricobs.diagnosis.findings import Diagnosis, Finding

_MOST_NAMED = 5


def ingest_table(report: IngestReport) -> str:
    """Return the account of an ingest: a line a format, then what stayed unread."""
    by_format: dict[str, list[FileOutcome]] = {}
    for outcome in report.read:
        by_format.setdefault(" + ".join(outcome.formats), []).append(outcome)
    rows = [("format", "files", "lines", "parsed", "ignored", "unread", "rows")]
    for name, outcomes in sorted(by_format.items()):
        rows.append((name, *(f"{n:,}" for n in _sums(outcomes))))
    rows.append(("all", *(f"{n:,}" for n in _sums(report.read))))
    lines = [_align(rows)]
    unchanged = sum(outcome.unchanged for outcome in report.outcomes)
    if unchanged:
        lines.append(f"{unchanged:,} files were in the store already and have not changed.")
    lines.extend(_unread(report.read))
    lines.extend(_named("not recognised", report.unrecognised))
    return "\n".join(lines)


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
            lines.append(f"{outcome.path}:{number}: {missed:,} lines unread; {reason}: {text[:100]}")
        if outcome.unused:
            lines.append(f"{outcome.path}: columns without a use: {', '.join(outcome.unused[:8])}")
    return [*lines[:_MOST_NAMED], *_and_more(lines)]


def _named(title: str, outcomes: Sequence[FileOutcome]) -> list[str]:
    lines = [f"{outcome.path}: {title}: {outcome.unrecognised}" for outcome in outcomes]
    return [*lines[:_MOST_NAMED], *_and_more(lines)]


def _and_more(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _MOST_NAMED
    return [f"... and {more:,} more; see tables `files` and `unparsed`"] if more > 0 else []


def _align(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
