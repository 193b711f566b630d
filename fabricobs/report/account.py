"""The account of an ingest as text: what was read, and what stayed unread."""

from collections import Counter
from collections.abc import Iterable, Sequence

from fabricobs.inputs import FileOutcome, IngestReport, Span, not_kept, span_of
from fabricobs.printing import escaped
from fabricobs.report.layout import MOST_NAMED, aligned, fitted
from fabricobs.report.wording import counted

_MOST_SHAPES = 3


def ingest_table(report: IngestReport) -> str:
    """Return the account of an ingest: a line a format, then what stayed unread."""
    rows = [
        (name, *(f"{n:,}" for n in sums), *_times(span)) for name, sums, span in report.by_format()
    ]
    said = [f"{counted(number, 'file')} {why}." for why, number in report.not_read_again()]
    # A table of nothing says less than the sentence below it.
    lines = [aligned([report.COLUMNS, *rows])] if report.read or not said else []
    lines.extend(said)
    dropped: Counter[str] = Counter()
    for outcome in report.read:
        dropped.update(dict(outcome.not_kept))
    if dropped:
        kinds = not_kept(dropped.most_common())
        lines.append(escaped(f"Known, not kept: {kinds}; by file: column `not_kept` of `files`."))
    lines.extend(map(escaped, report.left_out.lines()))
    lines.extend(
        escaped(f"--host-from {pattern} fits no path below LOGS, such as {report.a_path}")
        for pattern in report.unfit_patterns
    )
    doubts = [f"{outcome.name}: {outcome.doubt}" for outcome in report.read if outcome.doubt]
    told = [
        *_unread(report.read),
        *_named("not recognised", report.unrecognised),
        *_unknown_devices(report.unknown_devices),
        *_times_of_change(report.read),
        *doubts[:MOST_NAMED],
        *_and_more(doubts),
        *_untimed_steps(report.read),
        *_shapes(report.outcomes),
    ]
    lines.extend(map(escaped, told))
    return fitted("\n".join(lines))


def _times(span: Span | None) -> tuple[str, str]:
    """Return first and last time as text."""
    if span is None:
        return "", ""
    first, last = span
    return f"{first:%Y-%m-%d %H:%M:%S}", f"{last:%Y-%m-%d %H:%M:%S}"


def _shapes(outcomes: Sequence[FileOutcome]) -> list[str]:
    """Return the most frequent shapes of lines no format claims: what is worth a definition."""
    counted: Counter[str] = Counter()
    for outcome in outcomes:
        counted.update(dict(outcome.shapes))
    if not counted:
        return []
    return [
        "Most frequent lines that match no format (`fabricobs formats new` drafts one):",
        *(f"  {count:6,} x  {shape}" for shape, count in counted.most_common(_MOST_SHAPES)),
    ]


def _unread(outcomes: Iterable[FileOutcome]) -> list[str]:
    lines = []
    for outcome in outcomes:
        missed = outcome.unparsed - outcome.unclaimed
        if missed and outcome.first_unread is not None:
            number, reason, text = outcome.first_unread
            lines.append(
                f"{outcome.name}:{number}: {missed:,} lines unread; {reason}: {text[:100]}"
            )
    return [*lines[:MOST_NAMED], *_and_more(lines)]


def _unknown_devices(outcomes: Sequence[FileOutcome]) -> list[str]:
    """Say which devices nothing names, and how to name them."""
    files = Counter(outcome.unknown_device for outcome in outcomes)
    if not files:
        return []
    lines = [f"{name}: {counted(count, 'file')}" for name, count in files.most_common()]
    return [
        f"No host or switch is known for {counted(sum(files.values()), 'file')}; each source is a "
        "device of its own. Say where the paths below LOGS name it, like "
        "--host-from '{host}/{time}/**', or list these names as `alias` in a host map:",
        *(f"  {line}" for line in [*lines[:MOST_NAMED], *_and_more(lines)]),
    ]


def _times_of_change(outcomes: Sequence[FileOutcome]) -> list[str]:
    """Say which files have no time but that of their last change, and whether it can be true."""
    guessed = [outcome for outcome in outcomes if outcome.timed_by_change]
    if not guessed:
        return []
    first, last = _times(span_of(guessed))
    others = _times(span_of([each for each in outcomes if not each.timed_by_change]))
    outside = others[0] and not others[0] <= first <= last <= others[1]
    beyond = f", outside the times of all others ({others[0]} to {others[1]})" if outside else ""
    taken = first if first == last else f"{first} to {last}"
    return [
        f"{counted(len(guessed), 'file')} without a time: that of the last change is taken, "
        f"{taken}{beyond}. A copy may bear the time of its copying: say where the paths "
        "below LOGS hold the true one, like --host-from '{host}/{time}/**'."
    ]


def _untimed_steps(outcomes: Sequence[FileOutcome]) -> list[str]:
    """Say in which files steps have no time: no step time, clock or time of the line."""
    lines = [
        f"{outcome.name}: {counted(outcome.untimed_steps, 'step')}, no time in them: log the time "
        "of each step, or the time of each line"
        for outcome in outcomes
        if outcome.untimed_steps
    ]
    return [*lines[:MOST_NAMED], *_and_more(lines)]


def _named(title: str, outcomes: Sequence[FileOutcome]) -> list[str]:
    lines = [f"{outcome.name}: {title}: {outcome.unrecognised}" for outcome in outcomes]
    return [*lines[:MOST_NAMED], *_and_more(lines)]


def _and_more(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MOST_NAMED
    return [f"... and {more:,} more; see tables `files` and `unparsed`"] if more > 0 else []
