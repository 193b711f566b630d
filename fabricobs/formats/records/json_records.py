"""Records of JSON lines; each goes to the first block of the definition whose `where` key it has.

Arrow reads them by the types that the values of the lines read so far had. Lines that it refuses,
because a value is of another type or a line is torn, are read by Python, which shows their types.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fabricobs.formats.documents.jsontext import loads
from fabricobs.formats.documents.kept_values import KeptValues
from fabricobs.formats.mapping import Target
from fabricobs.formats.records.arrow_cells import ArrowCells
from fabricobs.formats.records.blocks import lines_of, read_block, text_of
from fabricobs.formats.records.columns import Cells, JsonCells
from fabricobs.formats.records.sink import RecordFormat, RecordSink
from fabricobs.formats.source import LineBlock

# What stands for a block of the definition where a line is none's.
_NO_BLOCK, _NO_RECORD = -1, -2
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')
_FIRST_TYPES = {"VARCHAR": pa.string(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_()}
_NEWLINE, _RETURN, _OPENS, _CLOSES = b"\n\r{}"
_EXACT = float(1 << 53)  # whole numbers up to it are doubles


class _Layout:
    """Where in a record the values are that a format wants, one slot each.

    Only what the records have gets a slot: a format may want any of many names.
    """

    def __init__(self, record_format: RecordFormat) -> None:
        self.slots: dict[str, int] = {}
        self._targets: list[list[Target]] = []
        wanted: dict[str, list[Target]] = {}
        for _, mapping in record_format.blocks:
            for path, target in mapping.sources().items():
                wanted.setdefault(path, []).append(target)
        self._wanted_by_key: dict[str, dict[str, list[Target]]] = {}
        for path, targets in wanted.items():
            self._wanted_by_key.setdefault(path.rpartition(".")[2], {})[path] = targets
        self.kinds = [block.where for block, _ in record_format.blocks]
        # What holds until given again: an object, and the slots below it.
        self._held = record_format.blocks[0][0].sticky
        self.sticky: list[list[int]] = [[] for _ in self._held]
        self._paths: list[list[str]] = []
        self._types: list[pa.DataType] = []
        self._is_typed = True
        self._shown: list[Sequence[Sequence[Any]]] = []

    def extend(self, data: bytes) -> None:
        """Give a slot to each value that the format wants of the records of a block."""
        for key in set(_KEY.findall(data)):
            name = _text(key)
            if "\\" in name:
                with suppress(ValueError):
                    name = str(loads(f'"{name}"'))
            for path, targets in self._wanted_by_key.pop(name, {}).items():
                self._add(path, targets)

    def _add(self, path: str, targets: list[Target]) -> None:
        self._take_types()  # they are those of the slots so far
        slot = self.slots[path] = len(self.slots)
        self._targets.append(targets)
        for slots, key in zip(self.sticky, self._held, strict=True):
            if path.startswith(f"{key}."):
                slots.append(slot)
        self._paths.append(path.split("."))
        self._types.append(_FIRST_TYPES.get(targets[0].column.type, pa.int64()))
        # A path that is a value here and an object there has no type.
        objects = {".".join(p[:length]) for p in self._paths for length in range(1, len(p))}
        self._is_typed = objects.isdisjoint(self.slots)

    def values(self, record: dict[str, Any]) -> list[Any]:
        """Return the values of a record by slot, None for what it lacks."""
        return [value_at(record, path) if path[0] in record else None for path in self._paths]

    def others(self, record: dict[str, Any]) -> Iterator[str]:
        """Yield the paths of a record that no block wants."""
        kept = KeptValues()
        kept.add_record(record, self.slots.__contains__)
        return kept.others(record)

    def kind_of(self, record: dict[str, Any]) -> int:
        """Return the position of the record's block, _NO_BLOCK for none."""
        for position, kind in enumerate(self.kinds):
            if kind is None or isinstance(value_at(record, kind.split(".")), dict):
                return position
        return _NO_BLOCK

    def learn(self, columns: Sequence[Sequence[Any]]) -> None:
        """Take the types of the values of some records for those of the next."""
        self._shown.append(columns)

    def schema(self) -> pa.Schema | None:
        """Return the schema of the next records; None where a path is a value and an object."""
        if not self._is_typed:
            return None
        self._take_types()
        tree: dict[str, Any] = {}
        for path, type_ in zip(self._paths, self._types, strict=True):
            _below(tree, path[:-1])[path[-1]] = type_
        for kind in filter(None, self.kinds):
            _below(tree, kind.split("."))
        return pa.schema(_struct(tree))

    def _take_types(self) -> None:
        for columns in self._shown:
            for slot, values in enumerate(columns):
                found = _type_of(values, self._targets[slot])
                self._types[slot] = found or self._types[slot]
        self._shown.clear()

    def columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns of records by slot."""
        return [_column(batch, path) for path in self._paths]

    def kinds_of(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """Return for each record what `kind_of` says."""
        kinds = np.full(batch.num_rows, _NO_BLOCK)
        for position, kind in reversed([*enumerate(self.kinds)]):
            if kind is None:
                kinds[:] = position
            else:
                kinds[np.asarray(_column(batch, kind.split(".")).is_valid())] = position
        return kinds

    def is_exact(self, columns: Sequence[pa.Array]) -> bool:
        """Say that no double stands for a whole number that it may not be."""
        for column, targets in zip(columns, self._targets, strict=True):
            if pa.types.is_floating(column.type):
                most = math.inf if _are_doubles(targets) else _EXACT
                if pc.any(pc.greater_equal(pc.abs(column), most)).as_py():
                    return False
        return True


def value_at(record: dict[str, Any], path: list[str]) -> Any:
    """Return the value at a path of a record, None if there is none."""
    value: Any = record
    for part in path:
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _below(tree: dict[str, Any], path: list[str]) -> dict[str, Any]:
    for part in path:
        tree = tree.setdefault(part, {})
    return tree


def _struct(tree: dict[str, Any]) -> pa.StructType:
    return pa.struct(
        [
            (name, _struct(type_) if isinstance(type_, dict) else type_)
            for name, type_ in tree.items()
        ]
    )


def _column(batch: pa.RecordBatch, path: list[str]) -> pa.Array:
    column = batch.column(path[0])
    return pc.struct_field(column, path[1:]) if path[1:] else column


def _are_doubles(targets: Sequence[Target]) -> bool:
    return all(target.column.type == "DOUBLE" and target.is_plain for target in targets)


def _type_of(values: Sequence[Any], targets: Sequence[Target]) -> pa.DataType | None:
    """Return the type that most of the values have; None if there are no values.

    Whole numbers stay whole where Python may tell them from doubles; of a column of them and of
    fractions that are no numbers of the table, every line is refused.
    """
    kinds = Counter(type(value) for value in values if value is not None)
    numbers = kinds[int] + kinds[float]
    if kinds[str] > numbers:
        return pa.string()
    if kinds[bool] > numbers:
        return pa.bool_()
    if _are_doubles(targets):
        return pa.float64()
    if kinds[float] and all(t.is_plain and t.column.type != "VARCHAR" for t in targets):
        return pa.float64()
    return pa.int64() if numbers else None


def read_jsonl(blocks: Iterator[LineBlock], sink: RecordSink) -> None:
    """Read the blocks of a file."""
    reader = _Reader(sink, _Layout(sink.record_format))
    for block in blocks:
        sink.count_overlong(block)
        reader.layout.extend(block.data)
        read_block(block, reader.in_bulk, reader.by_line)


@dataclass(slots=True)
class _Reader:
    """One file being read, and what holds until given again."""

    sink: RecordSink
    layout: _Layout
    _held: dict[int, Any] = field(default_factory=dict)

    def by_line(self, block: LineBlock) -> None:
        """Read a block line by line."""
        rows: dict[int, list[tuple[int, list[Any]]]] = {}
        for number, line in enumerate(lines_of(block), block.first):
            if number in block.overlong:
                continue
            kind, values = self._record(number, line)
            if values is not None:
                self._hold(values)
                rows.setdefault(kind, []).append((number, values))
        everything = [values for found in rows.values() for _, values in found]
        self.layout.learn([*zip(*everything, strict=True)])
        for kind, found in sorted(rows.items()):
            columns = [JsonCells(column) for column in zip(*(v for _, v in found), strict=True)]
            self._add(kind, columns, np.array([number for number, _ in found]), block)

    def _record(self, number: int, line: bytes) -> tuple[int, list[Any] | None]:
        """Return the block and the values of a line; no values, and it is counted, if it has none.

        A record of no block is counted too, but what it gives may hold for the next.
        """
        text = _text(line)
        if not text.strip():
            self.sink.tally.skip()
            return _NO_RECORD, None
        try:
            record = loads(text, strict=True)
            if not isinstance(record, dict):
                raise ValueError("not an object")
        except ValueError as error:
            self.sink.miss(number, str(error), text)
            return _NO_RECORD, None
        kind = self.layout.kind_of(record)
        if kind == _NO_BLOCK:
            self._miss_kind(number, text)
        else:
            self.sink.context.drop_fields(self.layout.others(record))
        return kind, self.layout.values(record)

    def _miss_kind(self, number: int, text: str) -> None:
        kinds = ", ".join(kind for kind in self.layout.kinds if kind)
        self.sink.miss(number, f"none of {kinds}", text)

    def _hold(self, values: list[Any]) -> None:
        """Let an object that a record leaves out be the one given before it."""
        for slots in self.layout.sticky:
            if any(values[slot] is not None for slot in slots):
                self._held.update((slot, values[slot]) for slot in slots)
            else:
                for slot in slots:
                    values[slot] = self._held.get(slot)

    def _add(
        self,
        kind: int,
        columns: Sequence[Cells],
        numbers: NDArray[np.int64],
        lines: LineBlock,
    ) -> None:
        if kind == _NO_BLOCK:
            return
        _, mapping = self.sink.record_format.blocks[kind]
        slots = self.layout.slots
        cells = {path: columns[slots[path]] for path in mapping.sources() if path in slots}
        self.sink.add(kind, cells, numbers, text_of(lines, _text))

    def in_bulk(self, block: LineBlock) -> bool:
        """Read a block by Arrow."""
        batch = _batch(block.data, self.layout.schema())
        if batch is None:
            return False
        columns = self.layout.columns(batch)
        if not self.layout.is_exact(columns):
            return False
        try:
            self._hold_columns(columns)
        except pa.ArrowInvalid:  # what is held has another type
            return False
        # Arrow names no others; those of the first record are named.
        first = loads(_text(block.data.partition(b"\n")[0]), strict=True)
        self.sink.context.drop_fields(self.layout.others(first))
        kinds = self.layout.kinds_of(batch)
        line = text_of(block, _text)
        for row in np.flatnonzero(kinds == _NO_BLOCK).tolist():
            self._miss_kind(block.first + row, line(block.first + row))
        for kind in range(len(self.layout.kinds)):
            rows = np.flatnonzero(kinds == kind)
            if len(rows):
                some = len(rows) < len(kinds)
                cells = [ArrowCells(c.take(pa.array(rows)) if some else c) for c in columns]
                self._add(kind, cells, rows + block.first, block)
        return True

    def _hold_columns(self, columns: list[pa.Array]) -> None:
        """Do what `_hold` does, for the records of a block; ArrowInvalid if it cannot."""
        held: dict[int, Any] = {}
        for slots in self.layout.sticky:
            given = np.any([columns[slot].is_valid() for slot in slots], axis=0)
            source = np.maximum.accumulate(np.where(given, np.arange(1, len(given) + 1), 0))
            for slot in slots:
                if not given.all():
                    before = pa.array([self._held.get(slot)], columns[slot].type)
                    columns[slot] = pa.concat_arrays([before, columns[slot]]).take(pa.array(source))
                held[slot] = columns[slot][-1].as_py()
        self._held |= held


def _batch(data: bytes, schema: pa.Schema | None) -> pa.RecordBatch | None:
    """Return the records of lines; None if a line is more or less than an object of this schema."""
    from pyarrow import json as arrow_json

    lines = _objects(data)
    if schema is None or not lines:
        return None
    try:
        if not data.isascii():
            data.decode()
        table = arrow_json.read_json(
            pa.py_buffer(data),
            arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except (UnicodeDecodeError, pa.ArrowInvalid):
        return None
    return table.to_batches()[0] if table.num_rows == lines else None


def _objects(data: bytes) -> int:
    """Count the lines, if each begins with `{` and ends with `}`; else 0.

    As within an object no `{` follows a `}` directly, none of valid ones goes on in the next line.
    """
    if not data.startswith(b"{"):
        return 0
    text = np.frombuffer(data, np.uint8)
    text = text[:-1] if text[-1] == _NEWLINE else text
    ends = np.append(np.flatnonzero(text == _NEWLINE), len(text))
    last = text[ends - 1]
    last = np.where(last == _RETURN, text[ends - 2], last)
    whole = (last == _CLOSES).all() and (text[ends[:-1] + 1] == _OPENS).all()
    return len(ends) if whole else 0


def _text(line: bytes) -> str:
    return line.replace(b"\x00", b"").decode("utf-8", "replace").removeprefix("\ufeff")
