"""What readers give: rows of the tables, and an account of every line."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from fabricobs.formats.conversion import UnfitByFile, to_arrow
from fabricobs.formats.outputs.column_batches import ColumnBatch, Shape, frames
from fabricobs.formats.shapes import sampled, shape_of

UNPARSED_SAMPLES = 20
# Rows held as tuples cost some hundred bytes, rows held as columns some tens.
_MOST_ROWS = 100_000
_MOST_FRAMED = 500_000
# A frame or stack takes some 30 kB, however few rows it has.
_MOST_FRAMES = 2_000
# The first of a file's unclaimed lines tell its frequent shapes well enough.
_SHAPED_LINES = 2_000


class Rows:
    """Rows by table and shape: a shape is the columns a row fills, so no cell is stored twice.

    Readers that work in columns add whole Arrow tables or stacks of cuts; the others single rows.
    """

    def __init__(self, expected_bytes: int = 0) -> None:
        self.expected_bytes = expected_bytes  # of all inputs whose rows these are
        self._shapes: dict[tuple[str, tuple[str, ...]], list[tuple[Any, ...]]] = {}
        self._frames: list[tuple[str, pa.Table]] = []
        self._stacks: dict[Shape, list[ColumnBatch]] = {}
        self.unfit = UnfitByFile()  # known once the rows are drained
        self.count = 0
        self._pending_rows = 0
        self._pending_framed = 0
        self._pending_frames = 0

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Add one row; columns it leaves out are null."""
        shape = (table, tuple(row))
        rows = self._shapes.get(shape)
        if rows is None:
            rows = self._shapes[shape] = []
        rows.append(tuple(row.values()))
        self.count += 1
        self._pending_rows += 1

    def add_frame(self, table: str, frame: pa.Table) -> None:
        """Add rows given as columns, in the schema of the table or a part of it."""
        if frame.num_rows:
            self._frames.append((table, frame))
            self._pending_frames += 1
            self.count += frame.num_rows
            self._pending_framed += frame.num_rows

    def add_stack(self, stack: ColumnBatch) -> None:
        """Add rows cut from ruled tables."""
        count = stack.row_count
        self._stacks.setdefault(stack.shape, []).append(stack)
        self._pending_frames += 1
        self.count += count
        self._pending_framed += count

    @property
    def pending(self) -> int:
        """Return how many rows wait to be drained."""
        return self._pending_rows + self._pending_framed

    @property
    def is_full(self) -> bool:
        """Say whether it is time to drain: what is held grows no further with the input."""
        return (
            self._pending_rows >= _MOST_ROWS
            or self._pending_framed >= _MOST_FRAMED
            or self._pending_frames >= _MOST_FRAMES
        )

    def drain(self) -> Iterator[tuple[str, pa.Table]]:
        """Hand over what was added, one Arrow table each with its coded schema, and forget it."""
        parts: dict[str, list[pa.Table]] = {}
        for (table, columns), rows in self._shapes.items():
            given = dict(zip(columns, zip(*rows, strict=True), strict=True))
            parts.setdefault(table, []).append(to_arrow(table, given, self.unfit))
        for stacks in self._stacks.values():
            self._frames.extend(frames(stacks))
        for table, frame in self._frames:
            given = {name: frame.column(name) for name in frame.column_names}
            parts.setdefault(table, []).append(to_arrow(table, given, self.unfit))
        self._shapes, self._frames, self._stacks = {}, [], {}
        self._pending_rows = self._pending_framed = self._pending_frames = 0
        for table, tables in parts.items():
            yield table, pa.concat_tables(tables).unify_dictionaries()


@dataclass(slots=True)
class Tally:
    """The account of one file: every line is parsed, ignored or unparsed."""

    lines: int = 0
    parsed: int = 0
    ignored: int = 0
    unparsed: int = 0
    unclaimed: int = 0
    samples: list[tuple[int, str, str]] = field(default_factory=list)
    unclaimed_samples: list[tuple[int, str, str]] = field(default_factory=list)
    shapes: Counter[str] = field(default_factory=Counter)  # of unclaimed lines
    # What is known and not kept: ignored lines by what they are about, values by their field.
    not_kept: Counter[str] = field(default_factory=Counter)

    def read(self, lines: int = 1) -> None:
        """Count lines that gave rows or context."""
        self.lines += lines
        self.parsed += lines

    def skip(self, lines: int = 1, about: str = "") -> None:
        """Count lines a format knows and does not need, and what they are about."""
        self.lines += lines
        self.ignored += lines
        if about and lines:
            self.not_kept[about] += lines

    @property
    def has_samples(self) -> bool:
        """Say whether enough lines that a format should have read are kept."""
        return len(self.samples) >= UNPARSED_SAMPLES

    @property
    def has_shapes(self) -> bool:
        """Say whether enough unclaimed lines have been looked at."""
        return self.unclaimed >= _SHAPED_LINES

    def miss_more(self, lines: int) -> None:
        """Count lines that a format should have read, of which enough are kept."""
        self.lines += lines
        self.unparsed += lines

    def leave_more(self, lines: int) -> None:
        """Count unclaimed lines, of which enough have been looked at."""
        self.miss_more(lines)
        self.unclaimed += lines

    def miss(self, number: int, reason: str, text: str) -> None:
        """Count a line a format should have read, and keep the first few."""
        self.lines += 1
        self.unparsed += 1
        if len(self.samples) < UNPARSED_SAMPLES:
            self.samples.append((number, reason, sampled(text)))

    def leave(self, number: int, text: str) -> None:
        """Count a line that matches no known format, and keep the first few."""
        self.lines += 1
        self.unparsed += 1
        self.unclaimed += 1
        if self.unclaimed <= _SHAPED_LINES:
            shape = shape_of(text)
            if any(c.isalpha() for c in shape):
                self.shapes[shape] += 1
        if len(self.unclaimed_samples) < UNPARSED_SAMPLES:
            reason = "matches no known format"
            self.unclaimed_samples.append((number, reason, sampled(text)))
