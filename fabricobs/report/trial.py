"""What formats made of some files, as text for the terminal."""

from collections.abc import Iterator, Sequence

from fabricobs.formats.near_misses import NearMiss
from fabricobs.formats.trial import Trial, UnreadShape
from fabricobs.printing import escaped
from fabricobs.report.layout import fitted, known_width
from fabricobs.report.wording import counted

# Of a longer line the part around the place is shown.
_WIDEST = 110
_MORE = "..."


def trials_text(trials: Sequence[Trial], most: int) -> str:
    """Return the trial of each kind of file: account, rows, and the unread lines by shape."""
    return "\n\n".join("\n".join(map(fitted, _trial(trial, most))) for trial in trials)


def _trial(trial: Trial, most: int) -> Iterator[str]:
    files = str(trial.paths[0]) if len(trial.paths) == 1 else counted(len(trial.paths), "file")
    yield escaped(f"{' + '.join(trial.formats) or 'no known format'}: {files}")
    for table, rows in sorted(trial.rows.items()):
        yield f"{table}: {counted(len(rows), 'row')}{_of_first(trial)}"
        for row in rows[:most]:
            yield "  " + escaped(", ".join(f"{name} {value}" for name, value in row.items()))
        if len(rows) > most:
            yield f"  ... and {len(rows) - most:,} more"
    tally = trial.tally
    yield (
        f"{tally.lines:,} lines: {tally.parsed:,} parsed, {tally.ignored:,} ignored, "
        f"{tally.unparsed:,} unread; {counted(trial.row_count, 'row')}"
    )
    yield from map(escaped, trial.problems)
    if trial.formats and tally.lines and not trial.row_count and not tally.unparsed:
        yield "No rule or block gives a row: give those that you need a table."
    if trial.unread:
        yield "Unread lines by shape, of the first 20 in each file:"
    for shape in trial.unread:
        yield from _shape(shape, several_files=len(trial.paths) > 1)


def _of_first(trial: Trial) -> str:
    return f" of {escaped(trial.paths[0].name)}" if len(trial.paths) > 1 else ""


def _shape(shape: UnreadShape, *, several_files: bool) -> Iterator[str]:
    where = f"{shape.path}:{shape.line}" if several_files else f"line {shape.line}"
    yield escaped(f"{shape.count:5,} x  {where}: {shape.reason}")
    if not shape.misses:
        yield f"    {_around(shape.text, 0)[0]}"
    for miss in shape.misses:
        yield from _miss(shape.text, miss)


def _miss(text: str, miss: NearMiss) -> Iterator[str]:
    shown, column = _around(text, miss.column)
    yield f"    {shown}"
    yield f"    {' ' * column}^ expected: {escaped(miss.expected)}"
    yield f"        {escaped(miss.where)}: {escaped(miss.template)}"


def _around(text: str, column: int) -> tuple[str, int]:
    """Return the part of a line around a place, and where the place is in it."""
    most = min(_WIDEST, (known_width() or 2 * _WIDEST) - 4 - 2 * len(_MORE))
    begin = max(0, min(column - most // 2, len(text) - most))
    before = _MORE if begin else ""
    after = _MORE if begin + most < len(text) else ""
    shown = escaped(text[begin : begin + most])
    return f"{before}{shown}{after}", len(before) + len(escaped(text[begin:column]))
