"""Records of JSON lines; each goes to the first block of the definition whose `where` key it has.

A big file's lines mostly have a few shapes: compiled code reads lines of the shapes learned so
far, and Python every other line, from which another shape may be learned.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.compiled import ffi
from fabricobs.formats.documents.jsontext import loads
from fabricobs.formats.records.columns import Cells, PackedCells, ReadCells
from fabricobs.formats.records.json_shapes import Shape, compile_shapes, learn
from fabricobs.formats.records.sink import PACE, RecordFormat, RecordSink
from fabricobs.formats.source import LineBlock

# Beyond that a file has no shapes, and trying them costs more than it gains.
_MOST_SHAPES = 32
_MOST_TRIALS = 200
# What stands for a block of the definition where a line is none's.
_NO_BLOCK, _NO_RECORD = -1, -2


class _Layout:
    """Where in a record the values are that a format wants, one slot each."""

    def __init__(self, record_format: RecordFormat) -> None:
        self.slots: dict[str, int] = {}
        for _, mapping in record_format.blocks:
            for path in mapping.sources():
                self.slots.setdefault(path, len(self.slots))
        self.kinds = [block.where for block, _ in record_format.blocks]
        named = [*self.slots, *(f"{kind}." for kind in self.kinds if kind)]
        self.objects = frozenset(
            path[:at] for path in named for at, c in enumerate(path) if c == "."
        )
        # What holds until given again: an object, and the slots below it.
        self.sticky = [
            [slot for path, slot in self.slots.items() if path.startswith(f"{key}.")]
            for key in record_format.blocks[0][0].sticky
        ]
        self._paths = [path.split(".") for path in self.slots]

    def values(self, record: dict[str, Any]) -> list[Any]:
        """Return the values of a record by slot, None for what it lacks."""
        return [_at(record, path) for path in self._paths]

    def kind_of(self, record: dict[str, Any]) -> int:
        """Return the position of the record's block, _NO_BLOCK for none."""
        for position, kind in enumerate(self.kinds):
            if kind is None or isinstance(_at(record, kind.split(".")), dict):
                return position
        return _NO_BLOCK

    def kind_of_shape(self, shape: Shape) -> int:
        """Return the position of the block of records of a shape, _NO_BLOCK for none."""
        for position, kind in enumerate(self.kinds):
            if kind is None or kind in shape.objects:
                return position
        return _NO_BLOCK


def _at(record: dict[str, Any], path: list[str]) -> Any:
    value: Any = record
    for part in path:
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def read_jsonl(blocks: Iterator[LineBlock], sink: RecordSink, size_bytes: int) -> None:
    """Read the blocks of a file of about `size_bytes`."""
    reader = _Reader(sink, _Layout(sink.record_format))
    for block in blocks:
        sink.count_overlong(block)
        if PACE.is_compiled(len(block.data), size_bytes) and not block.overlong:
            reader.read_compiled(block)
        else:
            reader.read(block)


@dataclass(slots=True)
class _Reader:
    """One file being read: the shapes it has shown, and what holds until given again."""

    sink: RecordSink
    layout: _Layout
    _held: dict[int, Any] = field(default_factory=dict)
    _shapes: list[Shape] = field(default_factory=list)
    _trials: int = 0

    def read(self, block: LineBlock) -> None:
        """Read a block line by line."""
        lines = block.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        rows: dict[int, list[tuple[int, list[Any]]]] = {}
        for line, text in enumerate(lines):
            if block.first + line in block.overlong:
                continue
            kind, values = self._record(block.first + line, text)
            if values is not None:
                self._hold(values)
                rows.setdefault(kind, []).append((line, values))
        for kind, found in sorted(rows.items()):
            columns = [list(column) for column in zip(*(v for _, v in found), strict=True)]
            numbers = np.array([line for line, _ in found])
            self._add(
                kind,
                [ReadCells(column, of_json=True) for column in columns],
                numbers + block.first,
                lambda row, found=found: _text(lines[found[row][0]]),
            )

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

    def _add(self, kind: int, columns: list[Any], numbers: NDArray[np.int64], text_of: Any) -> None:
        if kind == _NO_BLOCK:
            return
        block, mapping = self.sink.record_format.blocks[kind]
        if block.table is None:
            self.sink.tally.skip(len(numbers))
            return
        cells: dict[str, Cells] = {
            path: columns[self.layout.slots[path]] for path in mapping.sources()
        }
        self.sink.add(kind, cells, numbers, text_of)

    def read_compiled(self, block: LineBlock) -> None:
        """Read a block by compiled code; the lines it leaves are read by Python."""
        lines = ffi.numbered(block.data)
        count = len(lines.bounds) - 1
        cells = np.full((max(len(self.layout.slots), 1), count), -1)
        shapes = np.full(count, ffi.SHAPELESS, np.int32)
        self._match(lines, np.arange(count), cells, shapes)
        kinds = np.full(count, _NO_RECORD)
        left = np.flatnonzero(shapes == ffi.SHAPELESS)
        while len(left):
            line, left = int(left[0]), left[1:]
            text = lines.line(line)
            kind, values = self._record(block.first + line, text)
            if values is None:
                continue
            kinds[line] = kind
            for slot, value in enumerate(values):
                packed = -1 if value is None else lines.append(json.dumps(value).encode())
                cells[slot, line] = packed
            if len(left) and self._learn(text):
                self._match(lines, left, cells, shapes)
                left = left[shapes[left] == ffi.SHAPELESS]
        fitting = np.flatnonzero(shapes != ffi.SHAPELESS)
        of_shape = np.array([self.layout.kind_of_shape(shape) for shape in self._shapes], np.int64)
        kinds[fitting] = of_shape[shapes[fitting]]
        for line in fitting[kinds[fitting] == _NO_BLOCK].tolist():
            self._miss_kind(block.first + line, _text(lines.line(line)))
        self._hold_cells(lines, np.flatnonzero(kinds != _NO_RECORD), cells)
        data = lines.text()
        for kind in range(len(self.layout.kinds)):
            rows = np.flatnonzero(kinds == kind)
            if len(rows):
                mine = cells if len(rows) == count else np.ascontiguousarray(cells[:, rows])
                self._add(
                    kind,
                    [PackedCells(data, column, of_json=True) for column in mine],
                    rows + block.first,
                    lambda row, rows=rows: _text(lines.line(int(rows[row]))),
                )

    def _match(
        self, lines: Any, numbers: NDArray[np.int64], cells: NDArray[np.int64], shapes: Any
    ) -> None:
        if not self._shapes:
            return
        known = compile_shapes(self._shapes, ffi.PASSED, ffi.END)
        ffi.json_values(
            lines.data, lines.bounds, numbers, known.texts, known.literals, known.slots,
            known.starts, cells, shapes,
        )  # fmt: skip

    def _learn(self, line: bytes) -> bool:
        """Say whether the line has a shape not known yet, and one of use."""
        if len(self._shapes) >= _MOST_SHAPES or self._trials >= _MOST_TRIALS or b"\x00" in line:
            return False
        self._trials += 1
        shape = learn(line, self.layout.slots, self.layout.objects)
        if shape is None or shape in self._shapes:
            return False
        self._shapes.append(shape)
        return True

    def _hold_cells(self, lines: Any, records: NDArray[np.int64], cells: NDArray[np.int64]) -> None:
        """Do what `_hold` does, for the records of a block."""
        if not len(records):
            return
        for slots in self.layout.sticky:
            given = (cells[slots][:, records] >= 0).any(axis=0)
            if given.all():
                self._held.update(self._kept(lines, slots, records[-1:], cells))
                continue
            source = np.maximum.accumulate(np.where(given, np.arange(len(records)), -1))
            for slot in slots:
                held = self._held.get(slot)
                packed = -1 if held is None else lines.append(json.dumps(held).encode())
                column = cells[slot, records]
                cells[slot, records] = np.where(source >= 0, column[source], packed)
            last = np.flatnonzero(given)[-1:]
            if len(last):
                self._held.update(self._kept(lines, slots, records[last], cells))

    def _kept(
        self,
        lines: Any,
        slots: list[int],
        last: NDArray[np.int64],
        cells: NDArray[np.int64],
    ) -> dict[int, Any]:
        data = lines.text()
        return {slot: PackedCells(data, cells[slot, last], of_json=True).value(0) for slot in slots}


def _text(line: bytes) -> str:
    return line.replace(b"\x00", b"").decode("utf-8", "replace").removeprefix("\ufeff")
