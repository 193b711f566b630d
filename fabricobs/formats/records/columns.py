"""Columns of records: what every reader gives, and what a column of a table is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Protocol

import pyarrow as pa

from fabricobs.formats.columns import nulls
from fabricobs.formats.mapping import Target
from fabricobs.formats.records.values import from_json
from fabricobs.formats.values import Unfit
from fabricobs.store.tables import Type

# By row: which value does not fit its column.
Wrong = dict[int, Unfit]

CODES = pa.dictionary(pa.int32(), pa.string())
ARROW: dict[Type, pa.DataType] = {
    "VARCHAR": CODES,
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.int64(),
}


class Cells(Protocol):
    """A column of the source."""

    def fill(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Wrong]:
        """Return the column of the table, times in microseconds, and what is wrong, by row."""
        ...


@dataclass(frozen=True, slots=True)
class JsonCells:
    """Values of JSON as Python read them, of any type; None for none."""

    values: Sequence[Any]

    def fill(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Wrong]:
        """Convert each value."""
        if self.values.count(None) == len(self.values):
            return nulls(len(self.values), ARROW[target.column.type]), {}
        wrong: Wrong = {}
        filled = fitting([from_json(value, target, zone) for value in self.values], wrong)
        return pa.array(filled, ARROW[target.column.type]), wrong


def fitting(values: list[Any], wrong: Wrong) -> list[Any]:
    """Return the values, None for those that do not fit, which are noted."""
    unfit = {row: value for row, value in enumerate(values) if isinstance(value, Unfit)}
    if not unfit:
        return values
    wrong |= unfit
    return [None if row in unfit else value for row, value in enumerate(values)]
