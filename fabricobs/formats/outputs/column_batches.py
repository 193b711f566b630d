"""Rows of ruled tables as arrays: cuts that belong together, and the columns made of many of them.

Nothing is done for a single cell before a part is written; then the cuts of all files that print
the same header become columns at once.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fabricobs.formats.outputs.layouts import ColumnGroup, Part, RowKeys, RowSlice
from fabricobs.store.arrow import coded_schema

Flags = NDArray[np.bool_]
Shape = tuple[Any, ...]
Moment = tuple[Any, ...]  # table, device, time


@dataclass(eq=False)
class ColumnBatch:
    """Cuts side by side, which fill different columns of the same rows.

    `starts` are, by table, what its rows begin with; `numbers` the first line of each cut.
    """

    starts: Mapping[str, Mapping[str, Any]]
    names: RowKeys
    cuts: list[RowSlice]
    numbers: list[int]

    def takes(self, cut: RowSlice, starts: Mapping[str, Mapping[str, Any]]) -> bool:
        """Say whether a later cut fills other columns of these very rows."""
        families = [family for own in self.cuts for family in own.layout.families]
        if len(families) > len(self.cuts) or len(cut.layout.families) > 1 or starts != self.starts:
            return False
        other = cut.layout.families[0]
        apart = all(
            own.fields == other.fields and not set(own.columns) & set(other.columns)
            for own in families
        )
        return (
            apart and cut.names.columns == self.names.columns and cut.names.rows == self.names.rows
        )

    @property
    def families(self) -> tuple[ColumnGroup, ...]:
        """Return the rows each line gives."""
        return self.cuts[0].layout.families

    @property
    def shape(self) -> Shape:
        """Return what two batches have in common whose rows become columns together."""
        starts = tuple((table, *start) for table, start in self.starts.items())
        return (*(cut.layout for cut in self.cuts), starts)

    @property
    def row_count(self) -> int:
        """Return how many rows it gives; one without any value is none."""
        lines = self.cuts[0].lines
        count = lines * sum(len(family.fields) for family in self.families)
        if any(cut.missing is not None for cut in self.cuts):
            count = sum(int(_filled([self], number).sum()) for number in range(len(self.families)))
        return count

    @cached_property
    def identities(self) -> Mapping[Moment, Set[Part]]:
        """Return the identity of each row: which part, by table, device and time."""
        found: dict[Moment, Set[Part]] = {}
        for family in self.families:
            start = self.starts[family.table]
            if not self.names.tells_device:
                # The same ports and queues, sample after sample: told once.
                moment = (family.table, start.get("device"), start.get("ts"))
                parts = self.names.parts(family, start)
                found[moment] = parts | found[moment] if moment in found else parts
                continue
            at = self.names.columns.index("device")
            for place, row in enumerate(self.names.rows):
                moment = (family.table, row[at], start.get("ts"))
                found[moment] = found.get(moment, frozenset()) | set(
                    self.names.parts_of_row(place, family, start)
                )
        return found


def frames(batches: Sequence[ColumnBatch]) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of batches of one shape, by table."""
    for number, family in enumerate(batches[0].families):
        frame = _frame(batches, number)
        if frame.num_rows:
            yield family.table, frame


def _frame(batches: Sequence[ColumnBatch], number: int) -> pa.Table:
    family = batches[0].families[number]
    schema = coded_schema(family.table)
    many = len(family.fields)
    lines = np.array([batch.cuts[0].lines for batch in batches])
    columns: dict[str, pa.Array] = {}
    of_stack = np.repeat(np.arange(len(batches)), lines * many)
    for name in batches[0].starts[family.table]:
        values = [batch.starts[family.table][name] for batch in batches]
        columns[name] = pa.array(values, schema.field(name).type).take(of_stack)
    for place, name in enumerate(batches[0].names.columns):
        if name in schema.names:
            columns[name] = _named(batches, place, many, schema.field(name).type)
    for place, (name, _) in enumerate(family.fields[0]):
        values = [fields[place][1] for fields in family.fields]
        told = pa.array(values, schema.field(name).type)
        columns[name] = told.take(np.tile(np.arange(many), lines.sum()))
    columns["line"] = pa.array(_line_numbers(batches, number))
    for place in range(len(batches[0].cuts)):
        columns.update(_measured(batches, place, number))
    frame = pa.table(columns)
    filled = _filled(batches, number)
    return frame if filled.all() else frame.filter(pa.array(filled))


def _measured(
    batches: Sequence[ColumnBatch], place: int, number: int
) -> Iterator[tuple[str, pa.Array]]:
    """Yield the columns of measured values that the cuts at one place of the batches fill."""
    family = batches[0].cuts[place].layout.families[number]
    values = _of_family(np.concatenate([batch.cuts[place].values for batch in batches]), family)
    missing = _missing(batches, place, family)
    for column, name in enumerate(family.columns):
        mask = None if missing is None else np.ascontiguousarray(missing[:, column])
        yield name, pa.array(np.ascontiguousarray(values[:, column]), mask=mask)


def _of_family(values: NDArray[Any], family: ColumnGroup) -> NDArray[Any]:
    """Return the values of a family, rows x columns."""
    own = values[:, family.first : family.first + family.width]
    return own.reshape(-1, len(family.columns))


def _missing(batches: Sequence[ColumnBatch], place: int, family: ColumnGroup) -> Flags | None:
    cuts = [batch.cuts[place] for batch in batches]
    if all(cut.missing is None for cut in cuts):
        return None
    flags = [
        np.zeros(cut.values.shape, bool) if cut.missing is None else cut.missing for cut in cuts
    ]
    return _of_family(np.concatenate(flags), family)


def _filled(batches: Sequence[ColumnBatch], number: int) -> Flags:
    """Say of each row whether it has any value."""
    family = batches[0].families[number]
    filled = np.zeros(sum(batch.cuts[0].lines for batch in batches) * len(family.fields), bool)
    for place in range(len(batches[0].cuts)):
        filled |= _filled_by(batches, place, number)
    return filled


def _filled_by(batches: Sequence[ColumnBatch], place: int, number: int) -> Flags | np.bool_:
    missing = _missing(batches, place, batches[0].cuts[place].layout.families[number])
    return np.True_ if missing is None else ~missing.all(axis=1)


def _line_numbers(batches: Sequence[ColumnBatch], number: int) -> NDArray[np.int64]:
    """Return the line of each row: that of the first cut that has a value for it."""
    many = len(batches[0].families[number].fields)
    found = _numbers_at(batches, len(batches[0].cuts) - 1, many)
    for place in reversed(range(len(batches[0].cuts) - 1)):
        found = np.where(
            _filled_by(batches, place, number), _numbers_at(batches, place, many), found
        )
    return found


def _numbers_at(batches: Sequence[ColumnBatch], place: int, many: int) -> NDArray[np.int64]:
    return np.repeat(
        np.concatenate([s.numbers[place] + np.arange(s.cuts[place].lines) for s in batches]), many
    )


def _named(batches: Sequence[ColumnBatch], place: int, many: int, kind: pa.DataType) -> pa.Array:
    """Return an identity column; files that print the same names share one object."""
    texts: dict[int, NDArray[np.int64]] = {}
    values: dict[Any, int] = {}
    for batch in batches:
        if id(batch.names) not in texts:
            codes = [values.setdefault(row[place], len(values)) for row in batch.names.rows]
            texts[id(batch.names)] = np.array(codes)
    codes_of_rows = np.concatenate([texts[id(batch.names)] for batch in batches])
    return pa.array(list(values), kind).take(np.repeat(codes_of_rows, many))
