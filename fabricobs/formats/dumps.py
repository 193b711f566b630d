"""Runs of a dump's lines that are known but for the numbers at their ends.

A dump repeats the same few hundred lines at every sample. Once each of them has been read in full,
a run of them is its numbers in order: which cells of which rows they are is worked out once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fabricobs.formats.context import column_names
from fabricobs.formats.mapping import IDENTITY, ColumnMapping, Target
from fabricobs.formats.values import Value
from fabricobs.formats.values.numbers import parse_whole

# Eighteen digits fit 64 bits whatever they are. A run is bounded since a line that is not known
# may end it anywhere: what stands behind is then looked at again.
_LINE = rb"([^\n\r\x00\x1b\x80-\xff]*[ :])[0-9]{1,18}"
_RUN = re.compile(rb"(?:" + _LINE.replace(b"(", b"(?:") + rb"\n){1,512}")
_ONE = re.compile(_LINE)
_NUMBERS = re.compile(rb"(?<=[ :])[0-9]+(?=\n)")
_MOST_RUNS = 256


@dataclass(frozen=True, slots=True)
class KnownLine:
    """What a line gave when it was read in full, but for its number."""

    key: str
    fields: Mapping[str, Value]


@dataclass(slots=True)
class RunRow:
    """One row a run fills: cells by place of their line in the run; `others` have no column."""

    table: str
    identity: dict[str, Value]
    first: int
    columns: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """Lines from the first one on that are known: how many, and what they fill."""

    lines: int
    rows: tuple[RunRow, ...]
    converted: tuple[tuple[int, Target], ...]


@dataclass(frozen=True, slots=True)
class TakenRun:
    """A run and its numbers, with where in the data it ends."""

    run: Run
    numbers: list[bytes]
    end: int


class KnownLines:
    """The lines one reader has read in full, and the runs of them it has met."""

    def __init__(self, mapping: ColumnMapping, *, overwrite: bool) -> None:
        self._mapping = mapping
        self._overwrite = overwrite
        self._lines: dict[bytes, KnownLine] = {}
        self._runs: dict[bytes, Run] = {}

    def learn(self, line: str, value: str, known: KnownLine) -> None:
        """Keep what a line gave, if it is plain text with its value, a whole number, at the end."""
        found = _ONE.fullmatch(line.encode())
        if found is not None and line.endswith(value) and len(line) == found.end(1) + len(value):
            self._lines[found[1]] = known
            self._runs.clear()

    def run_at(self, data: bytes, at: int) -> TakenRun | None:
        """Return the run that begins at `at`; None if its first line is not known."""
        one = _ONE.match(data, at)
        if one is None or one[1] not in self._lines:
            return None
        found = _RUN.match(data, at)
        if found is None:
            return None
        bare = _NUMBERS.sub(b"", found[0])
        run = self._runs.get(bare)
        if run is None:
            if len(self._runs) >= _MOST_RUNS:
                self._runs.clear()
            run = self._runs[bare] = self._worked_out(bare)
        numbers = _NUMBERS.findall(found[0])
        end = found.end()
        if run.lines < len(numbers):
            del numbers[run.lines :]
            end = at
            for _ in range(run.lines):
                end = data.index(b"\n", end) + 1
        return TakenRun(run, numbers, end)

    def _worked_out(self, bare: bytes) -> Run:
        rows: dict[tuple[object, ...], RunRow] = {}
        converted: list[tuple[int, Target]] = []
        lines = bare.splitlines()
        for place, line in enumerate(lines):
            known = self._lines.get(line)
            if known is None or not self._fill(rows, converted, known, place):
                lines = lines[:place]
                break
        return Run(len(lines), tuple(rows.values()), tuple(converted))

    def _fill(
        self,
        rows: dict[tuple[object, ...], RunRow],
        converted: list[tuple[int, Target]],
        known: KnownLine,
        place: int,
    ) -> bool:
        """Note which cell a line fills; False if it has to be read in full."""
        target = self._mapping.resolve(known.key)
        if target is True:
            return True
        if isinstance(target, Target):
            if target.column.name in IDENTITY:
                return False
            table, told = target.table, {**known.fields, **dict(target.fields)}
        else:
            table, told = self._mapping.table, dict(known.fields)
            if "other" not in column_names(table):
                return True
        row = rows.setdefault((table, *told.items()), RunRow(table, told, place))
        cells = row.columns if isinstance(target, Target) else row.others
        name = target.column.name if isinstance(target, Target) else known.key
        if name in cells and not self._overwrite:
            return False
        cells[name] = place
        if isinstance(target, Target) and (
            target.factor is not None or target.parse is not parse_whole
        ):
            converted.append((place, target))
        return True
