"""What readers give: rows of the tables, and an account of every line."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from fabricobs.store.arrow import table_schema

UNPARSED_SAMPLES = 20
UNPARSED_TEXT = 500
# An unread line may be part of a dump of the environment.
_SECRET = re.compile(
    r"""((?:api_?key|[_-]key|token|secret|passw(?:or)?d|passphrase|credentials?)(?:_\w+)?["']?\s*[=:]\s*["']?)[^\s"',;]+""",
    re.IGNORECASE,
)


def sampled(text: str) -> str:
    """Return a line as it is kept: cut, and the values of what is named like a secret left out."""
    return _SECRET.sub(r"\1***", text)[:UNPARSED_TEXT]


class Rows:
    """Rows by table and shape: a shape is the columns a row fills, so no cell is stored twice.

    Readers that work in columns add whole Arrow tables; the others add single rows.
    """

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, tuple[str, ...]], list[tuple[Any, ...]]] = {}
        self._frames: list[tuple[str, pa.Table]] = []
        self.count = 0
        self.pending = 0

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Add one row; columns it leaves out are null."""
        shape = (table, tuple(row))
        rows = self._shapes.get(shape)
        if rows is None:
            rows = self._shapes[shape] = []
        rows.append(tuple(row.values()))
        self.count += 1
        self.pending += 1

    def add_frame(self, table: str, frame: pa.Table) -> None:
        """Add rows given as columns, in the schema of the table or a part of it."""
        if frame.num_rows:
            self._frames.append((table, frame))
            self.count += frame.num_rows
            self.pending += frame.num_rows

    def drain(self) -> Iterator[tuple[str, pa.Table]]:
        """Hand over what was added, as Arrow tables with the full schema, and forget it."""
        for (table, columns), rows in self._shapes.items():
            yield table, _to_arrow(table, dict(zip(columns, zip(*rows, strict=True), strict=True)))
        for table, frame in self._frames:
            given = {name: frame.column(name) for name in frame.column_names}
            yield table, _to_arrow(table, given)
        self._shapes, self._frames, self.pending = {}, [], 0


def _to_arrow(table: str, given: Mapping[str, Any]) -> pa.Table:
    schema = table_schema(table)
    length = len(next(iter(given.values())))
    columns = []
    for column in schema:
        values = given.get(column.name)
        if values is None:
            columns.append(pa.nulls(length, column.type))
        elif isinstance(values, pa.ChunkedArray):
            columns.append(values.cast(column.type))
        else:
            columns.append(pa.array(values, column.type))
    return pa.Table.from_arrays(columns, schema=schema)


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

    def read(self, lines: int = 1) -> None:
        """Count lines that gave rows or context."""
        self.lines += lines
        self.parsed += lines

    def skip(self, lines: int = 1) -> None:
        """Count lines a format knows and does not need."""
        self.lines += lines
        self.ignored += lines

    def miss(self, number: int, reason: str, text: str) -> None:
        """Count a line a format should have read, and keep the first few."""
        self.lines += 1
        self.unparsed += 1
        if len(self.samples) < UNPARSED_SAMPLES:
            self.samples.append((number, reason, sampled(text)))

    def leave(self, number: int, text: str) -> None:
        """Count a line that bears no format's mark, and keep the first few."""
        self.lines += 1
        self.unparsed += 1
        self.unclaimed += 1
        if len(self.unclaimed_samples) < UNPARSED_SAMPLES:
            reason = "bears no format's mark"
            self.unclaimed_samples.append((number, reason, sampled(text)))
