"""Runs of a dump's lines that are known but for the numbers at their ends.

A dump repeats the same few hundred lines at every sample. Once each of them has been read in full,
a run of them is its numbers in order: which cells of which rows they are is worked out once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabricobs.formats.context import column_names
from fabricobs.formats.mapping import IDENTITY, ColumnMapping, Target
from fabricobs.formats.values import Value
from fabricobs.formats.values.numbers import parse_whole

_DIGITS = b"0123456789"
_MOST_DIGITS = 18  # they fit 64 bits whatever they are
_FEWEST_BYTES, _MOST_BYTES = 1 << 10, 1 << 16  # looked at together
_MOST_LINES, _MOST_RUNS = 20_000, 256


@dataclass(frozen=True, slots=True)
class KnownLine:
    """What a line gave when it was read in full; `value` is None if it ends in a number."""

    key: str
    fields: Mapping[str, Value]
    value: str | None


@dataclass(slots=True)
class RunRow:
    """One row a run fills: cells by place of their line in the run; `others` have no column."""

    table: str
    identity: dict[str, Value]
    first: int
    columns: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Run:
    """Known lines: what they fill, which are converted and which say the same every time."""

    rows: dict[tuple[object, ...], RunRow] = field(default_factory=dict)
    converted: list[tuple[int, Target]] = field(default_factory=list)
    constant: list[tuple[int, Value]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)  # fields of known lines that nothing keeps
    lines: int = 0


@dataclass(frozen=True, slots=True)
class CachedRun:
    """A run, the numbers of its lines (empty where there are none), and where it ends."""

    run: Run
    numbers: list[bytes]
    end: int


class LineCache:
    """The lines of a format that were read in full, and the runs of them that were met."""

    def __init__(self, mapping: ColumnMapping, *, overwrite: bool) -> None:
        self._mapping = mapping
        self._overwrite = overwrite
        # By all of the line but its number; lines that say the same every time by all of it.
        self._numbered: dict[bytes, KnownLine] = {}
        self._constant: dict[bytes, KnownLine] = {}
        self._runs: dict[tuple[bytes, ...], Run] = {}
        self._room = _FEWEST_BYTES

    def learn(self, line: str, key: str, value: str, fields: Mapping[str, Value]) -> None:
        """Keep what a line gave, if its value alone can differ the next time or nothing can."""
        told = line.encode()
        bare = told.rstrip(_DIGITS)
        numbered = bare + value.encode() == told != bare
        known = self._numbered if numbered else self._constant
        same = bare if numbered else told
        gives = KnownLine(key, fields, None if numbered else value)
        if known.get(same) == gives or (not numbered and told in self._numbered):
            return
        if len(known) >= _MOST_LINES:
            known.clear()
        known[same] = gives
        if numbered:
            self._constant.pop(bare, None)
        self._runs.clear()

    def run_at(self, data: bytes, at: int) -> CachedRun | None:
        """Return the run that begins at `at`; None if its first line is not known."""
        lines, numbers = self._known_lines(data, at)
        if not lines:
            return None
        key = tuple(lines)
        run = self._runs.get(key)
        if run is None:
            if len(self._runs) >= _MOST_RUNS:
                self._runs.clear()
            run = self._runs[key] = self._worked_out(lines, numbers)
        if run.lines == 0:
            return None
        del numbers[run.lines :]
        end = at + sum(map(len, lines[: run.lines])) + sum(map(len, numbers)) + run.lines
        return CachedRun(run, numbers, end)

    def _known_lines(self, data: bytes, at: int) -> tuple[list[bytes], list[bytes]]:
        """Return the known lines from `at` on without their numbers, and the numbers."""
        lines: list[bytes] = []
        numbers: list[bytes] = []
        if not self._knows(data[at : data.find(b"\n", at)]):
            return lines, numbers
        window = data[at : at + self._room].split(b"\n")
        window.pop()  # more of it may follow
        numbered, constant = self._numbered, self._constant
        for line in window:
            bare = line.rstrip(_DIGITS)
            number = line[len(bare) :]
            if number and bare in numbered and len(number) <= _MOST_DIGITS:
                lines.append(bare)
                numbers.append(number)
            elif line in constant:
                lines.append(line)
                numbers.append(b"")
            else:
                break
        # A dump is as long as the one before it.
        taken = sum(map(len, window[: len(lines) + 1]))
        self._room = min(max(2 * taken, _FEWEST_BYTES), _MOST_BYTES)
        return lines, numbers

    def _knows(self, line: bytes) -> bool:
        return line.rstrip(_DIGITS) in self._numbered or line in self._constant

    def _worked_out(self, lines: list[bytes], numbers: list[bytes]) -> Run:
        run = Run()
        for line, number in zip(lines, numbers, strict=True):
            known = self._numbered[line] if number else self._constant[line]
            if not self._fill(run, known, run.lines):
                break
            run.lines += 1
        return run

    def _fill(self, run: Run, known: KnownLine, place: int) -> bool:
        """Note which cell a line fills; False if it has to be read in full."""
        target = self._mapping.resolve(known.key)
        if target is True:
            run.dropped.append(known.key)
            return True
        if isinstance(target, Target):
            if target.column.name in IDENTITY:
                return False
            table, told = target.table, {**known.fields, **dict(target.fields)}
            constant = None if known.value is None else target.convert(known.value)
        else:
            table, told = self._mapping.table, dict(known.fields)
            if "other" not in column_names(table):
                run.dropped.append(known.key)
                return True
            constant = None if known.value is None else parse_whole(known.value.replace(",", ""))
        if known.value is not None and constant is None:
            return True
        row = run.rows.setdefault((table, *told.items()), RunRow(table, told, place))
        cells = row.columns if isinstance(target, Target) else row.others
        name = target.column.name if isinstance(target, Target) else known.key
        if name in cells and not self._overwrite:
            return False
        cells[name] = place
        if known.value is not None:
            run.constant.append((place, constant))
        elif isinstance(target, Target) and not _is_plain(target):
            run.converted.append((place, target))
        return True


def _is_plain(target: Target) -> bool:
    return target.factor is None and target.parse is parse_whole
