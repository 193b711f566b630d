"""Reading big logs: the compiled matcher takes the lines it is sure of, whole columns at a time.

What it leaves is read line by line, in order, so that a big file gives the rows a small one would.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fabricobs.formats.columns import coded, constant, numbers
from fabricobs.formats.compiled import matches
from fabricobs.formats.compiled.machine import entry, words_of
from fabricobs.formats.compiled.programs import (
    IGNORED,
    LEFT,
    NUMERIC,
    ROW,
    Programs,
    compile_programs,
)
from fabricobs.formats.context import Context, column_names
from fabricobs.formats.definition import LineRule
from fabricobs.formats.logs.lines import LineFormat, LineReader
from fabricobs.formats.logs.prefixes import before_message
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.source import LONGEST_LINE, LineBlock
from fabricobs.formats.templates import Template
from fabricobs.formats.values import VALUE_TYPES, Unfit

# Below this the line-by-line way is done before the matcher is loaded; compiling it, which a
# machine does once, takes as long as 30 MB do.
LEAST_BYTES = 8 << 20

_NEWLINE = 10

SlowLine = Callable[[LineBlock], None]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A template a matched line gives a row by."""

    rule: LineRule
    template: Template


@dataclass(frozen=True, slots=True)
class _Known:
    """A format's programs, and what each template fills."""

    programs: Programs
    entries: tuple[_Entry, ...]
    tables: tuple[str, ...]
    slots: int


@cache
def _known(line_format: LineFormat) -> _Known:
    entries = tuple(
        _Entry(rule.definition, template)
        for rule in line_format.rules
        for template in rule.templates
    )
    templates = [entry.template for entry in entries]
    outcomes = [_outcome(entry.rule) for entry in entries]
    return _Known(
        compile_programs(templates, outcomes, line_format.mark),
        entries,
        tuple({e.rule.table for e in entries if e.rule.table is not None}),
        max((len(template.fields) for template in templates), default=0),
    )


def _outcome(rule: LineRule) -> int:
    """Say what becomes of a line of the rule: LEFT where there is more to it than its template."""
    if rule.keep or rule.find or rule.each or rule.when or rule.advance or rule.shared:
        return LEFT
    return IGNORED if rule.table is None else ROW


def can_read(line_format: object, size_bytes: int) -> bool:
    """Say whether a file is worth the matcher, and its format fit for it."""
    return (
        size_bytes >= LEAST_BYTES
        and isinstance(line_format, LineFormat)
        and " " in line_format.mark
        and line_format.mark.isascii()
        and line_format.anchor is not None
    )


class BulkReader:
    """One marked `lines` format reading one big file.

    Rows are held until there is no more room for them; what `flush` writes then makes room again.
    """

    def __init__(
        self,
        reader: LineReader,
        context: Context,
        rows: Rows,
        tally: Tally,
        slow_line: SlowLine,
        flush: Callable[[], None],
        others: Sequence[str] = (),
    ) -> None:
        """Read with `reader`; lines that also hold a mark of `others` are read line by line."""
        self._others = [mark.encode() for mark in others]
        self._reader = reader
        self._format = reader.format
        self._context = context
        self._rows = rows
        self._tally = tally
        self._slow_line = slow_line
        self._flush = flush
        self._known = _known(reader.format)
        self._match = entry("kernel", "match_lines")
        self._vocabulary = matches.new_vocabulary()
        self._found = matches.new_found(self._known.slots)
        self._progress = matches.new_progress()
        self._judged: dict[bytes, dict[str, Any] | None] = {}
        self._prefix_fields: dict[int, dict[str, Any]] = {}
        self._first_row = 0  # of those not handed over
        self._bases = self._new_bases()
        self._generation = context.generation

    def read(self, data: NDArray[np.uint8], length: int, first: int) -> int:
        """Read the whole lines in the first `length` bytes; return the number of the next line.

        At least `programs.MARGIN` bytes must follow; one of them may be written. `first` is the
        number of the first line.
        """
        # The last line of a file may lack its newline.
        if data[length - 1] != _NEWLINE:
            data[length] = _NEWLINE
            length += 1
        at, number = 0, first
        for begin, end in self._shared_lines(data, length):
            number = self._read_marked(data, at, begin, number)
            self._read_slow_line(data, number, begin, end)
            at, number = end, number + 1
        return self._read_marked(data, at, length, number)

    def _shared_lines(self, data: NDArray[np.uint8], length: int) -> Iterator[tuple[int, int]]:
        """Yield begin and end of the lines that hold messages of this format and of another."""
        text = data[:length].tobytes() if self._others else b""
        own = self._format.mark.encode()
        places = {at for mark in self._others for at in _places(text, mark)}
        last = 0
        for at in sorted(places):
            begin, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at) + 1
            if begin >= last and text.find(own, begin, end) >= 0:
                yield begin, end
                last = end

    def _read_marked(self, data: NDArray[np.uint8], begin: int, end: int, first: int) -> int:
        """Read whole lines by the matcher; return the number of the next line."""
        if begin == end:
            return first
        progress = self._progress
        progress[[matches.AT, matches.LINE, matches.END]] = begin, first, end
        given = self._addresses(data)
        while True:
            reason = self._match(given)
            self._read_slow_lines(data)
            if reason == matches.DONE:
                return int(progress[matches.LINE])
            if reason == matches.ASKS:
                self._judge(int(progress[matches.ASKED]))
            else:
                self._make_room()
                given = self._addresses(data)

    def finish(self) -> None:
        """Hand over the rows that are still held."""
        self._hand_over(int(self._progress[matches.ROWS]))
        self._tally.skip(int(self._progress[matches.SKIPPED]), self._format.name)
        self._progress[matches.SKIPPED] = 0

    def _addresses(self, data: NDArray[np.uint8]) -> NDArray[np.int64]:
        known = self._known.programs
        return words_of(data, *known, *self._vocabulary, *self._found, self._progress)

    def _new_bases(self) -> dict[str, dict[str, Any]]:
        return {
            table: self._context.base(table, self._format.name, snapshot=False)
            for table in self._known.tables
        }

    def _read_slow_lines(self, data: NDArray[np.uint8]) -> None:
        """Read the lines the matcher left, in order."""
        count = int(self._progress[matches.LEFT_LINES])
        self._progress[matches.LEFT_LINES] = 0
        for number, begin, end in self._found.left[:count].tolist():
            self._read_slow_line(data, number, begin, end)

    def _read_slow_line(self, data: NDArray[np.uint8], number: int, begin: int, end: int) -> None:
        if end - begin > LONGEST_LINE + 1:
            self._slow_line(LineBlock(number, b"\n", (number,)))
        else:
            self._slow_line(LineBlock(number, data[begin:end].tobytes()))
        if self._context.generation != self._generation:
            # What this line said holds for the lines below it, not for those above.
            rows = self._progress[matches.ROWS]
            self._hand_over(int(np.searchsorted(self._found.lines[:rows], number)))
            self._bases, self._generation = self._new_bases(), self._context.generation

    def _judge(self, number: int) -> None:
        """Read a new prefix by the anchor; lines of one it refuses are slow."""
        text = self._text(number)
        if text not in self._judged:
            self._judged[text] = self._read_prefix(text.decode())
        fields = self._judged[text]
        self._prefix_fields[number] = fields or {}
        standing = matches.REFUSED if fields is None else matches.ACCEPTED
        self._vocabulary.standing[number] = standing

    def _read_prefix(self, text: str) -> dict[str, Any] | None:
        assert self._format.anchor is not None
        found = self._format.anchor.search(text)
        if found is None or found.end() != len(text):
            return None
        if not before_message(text[: found.start()], self._context.labels)[1]:
            return None
        try:
            fields = self._reader.prefix_fields(found)
        except ValueError:
            return None
        return None if any(isinstance(value, Unfit) for value in fields.values()) else fields

    def _text(self, number: int) -> bytes:
        begin, end = self._vocabulary.begins[number : number + 2].tolist()
        return self._vocabulary.arena[begin:end].tobytes()

    def _make_room(self) -> None:
        """Write all rows, and forget them and all texts."""
        self._hand_over(int(self._progress[matches.ROWS]))
        self._flush()
        if self._rows.pending:
            # Somebody holds them instead: theirs is the room.
            self._found = matches.new_found(self._known.slots)
        self._first_row = 0
        self._judged.clear()
        self._prefix_fields.clear()
        self._vocabulary.places.fill(-1)
        self._progress[[matches.ROWS, matches.KNOWN, matches.LAST]] = 0, 0, -1

    def _hand_over(self, end: int) -> None:
        """Add the rows up to row `end`, by template."""
        begin, self._first_row = self._first_row, end
        if begin == end:
            return
        templates = self._found.templates[begin:end]
        counts = np.bincount(templates, minlength=1)
        for number in np.flatnonzero(counts).tolist():
            entry = self._known.entries[number]
            chosen: slice | NDArray[np.int64] = slice(begin, end)
            if counts[number] < end - begin:
                chosen = np.flatnonzero(templates == number) + begin
            assert entry.rule.table is not None
            self._rows.add_frame(entry.rule.table, self._frame(chosen, int(counts[number]), entry))
            self._tally.read(int(counts[number]))

    def _frame(self, chosen: slice | NDArray[np.int64], count: int, entry: _Entry) -> pa.Table:
        """Return some rows of one template: what `LineReader` would give for each."""
        table = entry.rule.table or ""
        base = self._bases[table]
        names = column_names(table)
        constants = {**base, **entry.rule.set}
        columns = {n: constant(v, count) for n, v in constants.items() if v is not None}
        columns["line"] = numbers(self._found.lines[chosen])
        prefixes = self._prefix_columns(self._found.prefixes[chosen], table, base)
        columns.update((n, column) for n, column in prefixes.items() if n not in entry.rule.set)
        for slot, (name, type_name) in enumerate(entry.template.fields):
            if name in names:
                columns[name] = self._column(self._found.fields[slot][chosen], type_name)
        return pa.table(columns)

    def _column(self, values: NDArray[np.int64], type_name: str) -> pa.Array:
        """Return a captured field of some lines as a column."""
        if type_name == "number":
            return numbers(values.view(np.float64))
        if type_name in NUMERIC:
            return numbers(values)
        used, codes = _compact(values)
        parse = VALUE_TYPES[type_name].parse
        return coded(codes, [parse(self._text(number).decode()) for number in used])

    def _prefix_columns(
        self, prefixes: NDArray[np.int32], table: str, base: dict[str, Any]
    ) -> dict[str, pa.Array]:
        """Return what the prefixes tell: each distinct one is read once."""
        used, codes = _compact(prefixes)
        fields = [self._prefix_fields[number] for number in used]
        names = {name for each in fields for name in each} & column_names(table)
        columns = {
            name: coded(codes, [each.get(name, base.get(name)) for each in fields])
            for name in names
        }
        if "ts" in names:
            sources = [
                "inline" if each.get("ts") is not None else base["ts_source"] for each in fields
            ]
            columns["ts_source"] = coded(codes, sources)
        return columns


def _places(text: bytes, mark: bytes) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)


def _compact(numbers: NDArray[Any]) -> tuple[list[int], NDArray[np.int32]]:
    """Return the distinct numbers in order, and for each given one its place among them."""
    counts = np.bincount(numbers)
    used = np.flatnonzero(counts)
    if len(used) == 1:
        return used.tolist(), np.zeros(len(numbers), np.int32)
    places = np.empty(len(counts), np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    return used.tolist(), places[numbers]
