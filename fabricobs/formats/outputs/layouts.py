"""Layouts of ruled tables: what each column of a header and its ruler fills, worked out once.

Many snapshots print the same header. Their rows are cut by the compiled cutter and stay arrays
until a part is written; identities (ports, queues) repeat from file to file and are read once.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fabricobs.formats.compiled.cuts import PASSED, TEXT, Bytes, Flags, Whole, cut_lines
from fabricobs.formats.context import column_names
from fabricobs.formats.mapping import IDENTITY, ColumnMapping, Target
from fabricobs.formats.values import Unfit, parse_whole

# What is cut at once stays in the processor's cache.
_MOST_ROWS = 4096
_MOST_TEXT = 1 << 18
_MOST_NAMES = 4096

Part = tuple[Any, ...]  # port, priority, queue, profile
_PART = tuple(name for name in IDENTITY if name not in {"device", "ts"})
_MOST_STARTS = 16


@dataclass(frozen=True, eq=False)
class RowKeys:
    """The identities of the rows of a table, as they stand one below the other."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    _parts: dict[Hashable, Set[Part]] = field(default_factory=dict)

    @cached_property
    def tells_device(self) -> bool:
        """Say whether the rows themselves name their device."""
        return "device" in self.columns

    def parts(self, family: "ColumnGroup", start: Mapping[str, Any]) -> Set[Part]:
        """Return which part of its device each row of a family is; the start tells the rest."""
        key = (family.table, family.fields, *(start.get(name) for name in _PART))
        found = self._parts.get(key)
        if found is None:
            if len(self._parts) >= _MOST_STARTS:
                self._parts.clear()
            found = self._parts[key] = frozenset(
                part
                for place in range(len(self.rows))
                for part in self.parts_of_row(place, family, start)
            )
        return found

    def parts_of_row(
        self, place: int, family: "ColumnGroup", start: Mapping[str, Any]
    ) -> Iterator[Part]:
        """Yield which part each of the rows is that one line gives."""
        known = column_names(family.table)
        named = dict(zip(self.columns, self.rows[place], strict=True))
        for fields in family.fields:
            told = {name: value for name, value in (*named.items(), *fields) if name in known}
            yield tuple(told.get(name, start.get(name)) for name in _PART)

    @cached_property
    def differ(self) -> bool:
        """Say whether no row bears the identity of another."""
        return len(set(self.rows)) == len(self.rows)


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Rows of one table that a line gives: one for each of `fields`, all with the same columns.

    `PFC0 PFC1 ...` give a row for every priority. The values of a line stand at `first` and after,
    row by row.
    """

    table: str
    fields: tuple[tuple[tuple[str, Any], ...], ...]
    columns: tuple[str, ...]
    first: int

    @property
    def width(self) -> int:
        """Return how many values of a line are the family's."""
        return len(self.fields) * len(self.columns)


@dataclass(eq=False, slots=True)
class Layout:
    """How the lines below one header and ruler are cut, and what their cells fill."""

    columns: Whole  # 3 x n, as `cuts.cut_lines` says
    width: int
    families: tuple[ColumnGroup, ...]
    identity: tuple[Target, ...]
    targets: tuple[Target, ...]  # by place
    dropped: tuple[str, ...]  # columns that nothing keeps
    names: dict[bytes, RowKeys | None] = field(default_factory=dict)

    def names_of(self, texts: bytes) -> RowKeys | None:
        """Return the identities a column of texts tells; None if one cannot be meant."""
        found = self.names.get(texts)
        if found is None:
            found = self._read_names(texts.decode().split("\n")[:-1])
            if len(self.names) >= _MOST_NAMES:
                self.names.clear()
            self.names[texts] = found
        return found

    def _read_names(self, texts: Sequence[str]) -> RowKeys | None:
        columns = tuple(target.column.name for target in self.identity)
        try:
            rows = tuple(
                tuple(t.convert(text) for t, text in zip(self.identity, cells, strict=True))
                for cells in zip(*[iter(texts)] * len(columns), strict=True)
            )
        except ValueError:
            return None
        if any(isinstance(value, Unfit) for row in rows for value in row):
            return None
        return RowKeys(columns, rows)


@dataclass(frozen=True, slots=True)
class RowSlice:
    """Rows cut from a text: `values` and `missing` are rows x width."""

    layout: Layout
    names: RowKeys
    values: Whole
    missing: Flags | None
    end: int

    @property
    def lines(self) -> int:
        """Return how many lines were cut."""
        return len(self.values)

    def cells(self, row: int) -> list[tuple[Target, Any]]:
        """Return the measured cells of a row, in the order of their columns."""
        given = self.values[row].tolist()
        gone = self.missing[row].tolist() if self.missing is not None else [0] * len(given)
        return [
            (self.layout.targets[place], given[place])
            for place in self.layout.columns[2].tolist()
            if place >= 0 and not gone[place]
        ]


def layout_of(
    columns: Sequence[tuple[int, int, str]], gaps: Sequence[tuple[int, int]], mapping: ColumnMapping
) -> Layout | None:
    """Return the layout of a table if its first column names the row and the others count.

    `columns` are begin, end and name, `gaps` the blanks between them. None for a table that holds
    anything else: its lines are read one by one.
    """
    resolved = [mapping.resolve(name) for _, _, name in columns]
    targets = [target for target in resolved if isinstance(target, Target)]
    identity = [target for target in targets if target.column.name in IDENTITY]
    measured = [target for target in targets if target.column.name not in IDENTITY]
    filled = [(target.table, target.fields, target.column.name) for target in measured]
    if (
        not identity
        or resolved[0] is not identity[0]
        or not measured
        or not all(_is_count(target) for target in measured)
        or not _differ(filled)
        or not _differ(["ts", *(target.column.name for target in identity)])
        or (False in resolved and "other" in column_names(mapping.table))
    ):
        return None
    families = _families(measured)
    order = [
        (family.table, fields, name)
        for family in families
        for fields in family.fields
        for name in family.columns
    ]
    return Layout(
        columns=np.array(
            [
                [begin for begin, _, _ in columns],
                [*(begin for begin, _ in gaps), columns[-1][0] + 1],
                [_place(target, order) for target in resolved],
            ],
            np.int64,
        ),
        width=len(order),
        families=tuple(families),
        identity=tuple(identity),
        targets=tuple(measured[filled.index(key)] for key in order),
        dropped=tuple(
            name
            for (_, _, name), target in zip(columns, resolved, strict=True)
            if isinstance(target, bool)
        ),
    )


def _is_count(target: Target) -> bool:
    return target.parse is parse_whole and target.factor is None


def _differ(things: Sequence[Hashable]) -> bool:
    return len(set(things)) == len(things)


def _place(target: Target | bool, order: Sequence[tuple[str, Any, str]]) -> int:
    """Return what a column is to the cutter."""
    if isinstance(target, bool):
        return PASSED
    if target.column.name in IDENTITY:
        return TEXT
    return order.index((target.table, target.fields, target.column.name))


def _families(measured: Sequence[Target]) -> list[ColumnGroup]:
    """Put the rows of a line that fill the same columns together."""
    columns: dict[tuple[str, Any], tuple[str, ...]] = {}
    for target in measured:
        key = (target.table, target.fields)
        columns[key] = (*columns.get(key, ()), target.column.name)
    alike: dict[tuple[Any, ...], list[Any]] = {}
    for (table, fields), filled in columns.items():
        told = tuple(name for name, _ in fields)
        alike.setdefault((table, filled, told), []).append(fields)
    families: list[ColumnGroup] = []
    first = 0
    for (table, filled, _), rows in alike.items():
        families.append(ColumnGroup(table, tuple(rows), filled, first))
        first += families[-1].width
    return families


def cut_rows(data: Bytes, at: int, layout: Layout) -> RowSlice | None:
    """Cut the rows that stand from `at` on, up to a line in doubt; None if that is the first."""
    left = len(data) - at
    width = layout.width
    room = min(left // int(layout.columns[1, -1]) + 1, _MOST_ROWS)
    values = np.empty((room, width), np.int64)
    missing = np.empty((room, width), np.bool_)
    texts = np.empty(min(left, _MOST_TEXT) + layout.columns.shape[1], np.uint8)
    rows, end, written, absent = cut_lines(data, at, layout.columns, values, missing, texts)
    names = layout.names_of(texts[:written].tobytes()) if rows else None
    if names is None:
        return None
    return RowSlice(layout, names, values[:rows], missing[:rows] if absent else None, end)
