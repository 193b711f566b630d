"""Reading big logs: the compiled matcher takes the lines it is sure of, whole columns at a time.

What it leaves is read line by line, in order, so that a big file gives the rows a small one would.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fabricobs.formats.context import Context, column_names
from fabricobs.formats.definition import LineRule
from fabricobs.formats.lines import LineFormat, LineReader
from fabricobs.formats.prefixes import prefix_of
from fabricobs.formats.programs import Programs, compile_programs
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.source import LineBlock
from fabricobs.formats.templates import Template
from fabricobs.formats.values import VALUE_TYPES

# Below this the line-by-line way is done before the matcher is loaded; compiling it, which a
# machine does once, takes as long as 30 MB do.
LEAST_BYTES = 8 << 20

Whole = NDArray[np.int64]
SlowLine = Callable[[int, bytes], None]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A template a matched line gives a row by."""

    rule: LineRule
    template: Template


@dataclass(frozen=True, slots=True)
class _Matcher:
    """A format's programs, and what each template fills."""

    programs: Programs
    entries: tuple[_Entry, ...]
    mark: NDArray[np.uint8]
    tables: tuple[str, ...]


@cache
def _matcher(line_format: LineFormat) -> _Matcher:
    entries = tuple(
        _Entry(rule.definition, template)
        for rule in line_format.rules
        for template in rule.templates
    )
    usable = [_gives_one_row(entry.rule) for entry in entries]
    return _Matcher(
        compile_programs([entry.template for entry in entries], usable),
        entries,
        np.frombuffer(line_format.mark.encode(), np.uint8),
        tuple({e.rule.table for e in entries if e.rule.table is not None}),
    )


def _gives_one_row(rule: LineRule) -> bool:
    """Say whether a match of the rule's template is all there is to a line."""
    own = rule.keep or rule.find or rule.each or rule.when or rule.advance
    return rule.table is not None and not own


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
    """One marked `lines` format reading one big file."""

    def __init__(self, reader: LineReader, context: Context, rows: Rows, tally: Tally) -> None:
        self._reader = reader
        self._format = reader.format
        self._context = context
        self._rows = rows
        self._tally = tally
        self._matcher = _matcher(reader.format)
        self._prefixes: dict[bytes, dict[str, Any] | None] = {}

    def read(self, block: LineBlock, slow_line: SlowLine) -> None:
        """Read a block; `slow_line` gets number and bytes of every line that is left, in order."""
        matched = _match(block.data, self._matcher)
        self._check_prefixes(matched)
        bases, generation, begin = self._bases(), self._context.generation, 0
        for line in np.flatnonzero(matched.rules < 0).tolist():
            slow_line(block.first + line, matched.line(line))
            if self._context.generation != generation:
                # What this line said holds for the lines below it, not for those above.
                self._emit(matched, begin, line, block.first, bases)
                bases, generation, begin = self._bases(), self._context.generation, line + 1
        self._emit(matched, begin, len(matched.rules), block.first, bases)

    def _bases(self) -> dict[str, dict[str, Any]]:
        return {
            table: self._context.base(table, self._format.name, snapshot=False)
            for table in self._matcher.tables
        }

    def _check_prefixes(self, matched: "_Matched") -> None:
        """Read each distinct prefix by the anchor; lines of one it refuses are slow."""
        matched.prefix_fields = []
        for number, text in enumerate(matched.prefix_texts):
            if text not in self._prefixes:
                self._prefixes[text] = self._read_prefix(text.decode())
            fields = self._prefixes[text]
            if fields is None:
                matched.rules[matched.prefixes == number] = -1
            matched.prefix_fields.append(fields or {})

    def _read_prefix(self, text: str) -> dict[str, Any] | None:
        assert self._format.anchor is not None
        found = self._format.anchor.search(text)
        if found is None or found.end() != len(text) or not prefix_of(text[: found.start()])[1]:
            return None
        try:
            return self._reader.prefix_fields(found)
        except ValueError:
            return None

    def _emit(
        self,
        matched: "_Matched",
        begin: int,
        end: int,
        first: int,
        bases: dict[str, dict[str, Any]],
    ) -> None:
        """Add the rows of lines `begin` to `end`, by template."""
        rules = matched.rules[begin:end]
        counts = np.bincount(rules[rules >= 0], minlength=len(self._matcher.entries))
        for number in np.flatnonzero(counts).tolist():
            entry = self._matcher.entries[number]
            lines = np.flatnonzero(rules == number) + begin
            assert entry.rule.table is not None
            base = bases[entry.rule.table]
            self._rows.add_frame(entry.rule.table, _frame(matched, lines, entry, base, first))
            self._tally.read(len(lines))


@dataclass(slots=True)
class _Matched:
    """A block after the matcher: by line its template or -1, its prefix, its values."""

    data: NDArray[np.uint8]
    bounds: Whole
    rules: NDArray[np.int32]
    prefixes: NDArray[np.int32]
    fields: Whole  # lines x slots
    prefix_texts: list[bytes]
    prefix_fields: list[dict[str, Any]]

    def line(self, number: int) -> bytes:
        """Return a line's bytes and its newline."""
        return self.data[self.bounds[number] : self.bounds[number + 1]].tobytes()


def _match(data: bytes, matcher: _Matcher) -> _Matched:
    from fabricobs.formats import kernel

    # The last line of a file may lack its newline.
    text = np.frombuffer(data if data.endswith(b"\n") else data + b"\n", np.uint8)
    lines, others = kernel.survey(text)
    bounds = np.empty(lines + 1, np.int64)
    kernel.line_bounds(text, bounds)
    programs = matcher.programs
    rules = np.empty(lines, np.int32)
    prefixes = np.full(lines, -1, np.int32)
    fields = np.empty((lines, max(programs.slots, 1)), np.int64)
    seen = np.empty(lines, np.int64)
    known = kernel.match_block(
        text, bounds, others == lines, matcher.mark, programs.code, programs.starts,
        programs.followed, programs.usable, programs.texts, programs.classes, programs.words,
        programs.candidates, programs.lists, rules, prefixes, fields.reshape(-1), fields.shape[1],
        _slots(lines), seen,
    )  # fmt: skip
    return _Matched(text, bounds, rules, prefixes, fields, _texts(text, seen[:known]), [])


def _slots(entries: int) -> Whole:
    """Return an empty hash table for up to `entries` texts."""
    return np.full(1 << (2 * entries).bit_length(), -1, np.int64)


def _texts(data: NDArray[np.uint8], packed: Whole) -> list[bytes]:
    from fabricobs.formats import kernel

    begins = packed >> kernel.LENGTH_BITS
    ends = begins + (packed & ((1 << kernel.LENGTH_BITS) - 1))
    return [data[a:b].tobytes() for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]


def _frame(
    matched: _Matched, lines: Whole, entry: _Entry, base: dict[str, Any], first: int
) -> pa.Table:
    """Return the rows of the lines that fit one template: what `LineReader` would give for each."""
    table = entry.rule.table or ""
    names = column_names(table)
    count = len(lines)
    columns = {name: _constant(table, name, value, count) for name, value in base.items()}
    columns["line"] = pa.array(lines + first)
    columns.update(_prefix_columns(matched, lines, table, base))
    for name, value in entry.rule.set.items():
        columns[name] = _constant(table, name, value, count)
    for slot, (name, type_name) in enumerate(entry.template.fields):
        if name in names:
            values = np.ascontiguousarray(matched.fields[lines, slot])
            columns[name] = _column(matched.data, values, type_name)
    return pa.table(columns)


def _constant(table: str, name: str, value: Any, count: int) -> pa.Array:
    """Return a column of one value."""
    if value is None:
        return pa.nulls(count)
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([value]))
    return pa.repeat(pa.scalar(value), count)


def _column(data: NDArray[np.uint8], values: Whole, type_name: str) -> pa.Array:
    """Return a captured field of some lines as a column."""
    from fabricobs.formats import kernel

    if type_name in {"int", "hex"}:
        return pa.array(values)
    if type_name == "number":
        return pa.array(values.view(np.float64))
    codes = np.empty(len(values), np.int32)
    seen = np.empty(len(values), np.int64)
    known = kernel.intern_column(data, values, codes, _slots(len(values)), seen)
    parse = VALUE_TYPES[type_name].parse
    return _coded(codes, [parse(text.decode()) for text in _texts(data, seen[:known])])


def _coded(codes: NDArray[np.int32], values: list[Any]) -> pa.Array:
    """Return the column whose row `i` is `values[codes[i]]`, null where that is None."""
    if any(isinstance(value, str) for value in values):
        given = [value for value in values if value is not None]
        places = np.cumsum([value is not None for value in values]).astype(np.int32) - 1
        indices = places[codes]
        missing = np.array([value is None for value in values])[codes]
        return pa.DictionaryArray.from_arrays(
            pa.array(indices, mask=missing if len(given) < len(values) else None), pa.array(given)
        )
    return pa.array(values).take(pa.array(codes))


def _prefix_columns(
    matched: _Matched, lines: Whole, table: str, base: dict[str, Any]
) -> dict[str, pa.Array]:
    """Return what the prefixes tell: each distinct one is read once."""
    codes = matched.prefixes[lines]
    used = np.unique(codes)
    codes = np.searchsorted(used, codes).astype(np.int32)
    fields = [matched.prefix_fields[number] for number in used.tolist()]
    names = {name for each in fields for name in each} & column_names(table)
    columns = {
        name: _coded(codes, [each.get(name, base.get(name)) for each in fields]) for name in names
    }
    if "ts" in names:
        sources = ["inline" if each.get("ts") is not None else base["ts_source"] for each in fields]
        columns["ts_source"] = _coded(codes, sources)
    return columns
