"""Layouts of ruled tables: what each column of a header and its ruler fills, worked out once.

Many snapshots print the same header. Their rows are cut by the compiled cutter and stay arrays
until a part is written; identities (ports, queues) repeat from file to file and are read once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.context import column_names
from fabricobs.formats.mapping import IDENTITY, ColumnMapping, Target
from fabricobs.formats.values import parse_whole

# What is cut at once stays in the processor's cache.
_MOST_ROWS = 4096
_MOST_TEXT = 1 << 18
_MOST_NAMES = 4096

# What a column is to the cutter; a value from 0 on says which place of the row its number takes.
TEXT = -1
PASSED = -2

Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Names:
    """The identities of the rows of a table, as they stand one below the other."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @cached_property
    def differ(self) -> bool:
        """Say whether no row bears the identity of another."""
        return len(set(self.rows)) == len(self.rows)


@dataclass(frozen=True, slots=True)
class Family:
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

    begins: Whole
    ends: Whole
    places: Whole
    width: int
    families: tuple[Family, ...]
    identity: tuple[Target, ...]
    targets: tuple[Target, ...]  # by place
    names: dict[bytes, Names | None] = field(default_factory=dict)

    def names_of(self, texts: bytes) -> Names | None:
        """Return the identities a column of texts tells; None if one cannot be meant."""
        if texts not in self.names:
            if len(self.names) >= _MOST_NAMES:
                self.names.clear()
            self.names[texts] = self._read_names(texts.decode().split("\n")[:-1])
        return self.names[texts]

    def _read_names(self, texts: Sequence[str]) -> Names | None:
        columns = tuple(target.column.name for target in self.identity)
        try:
            rows = tuple(
                tuple(t.convert(text) for t, text in zip(self.identity, cells, strict=True))
                for cells in zip(*[iter(texts)] * len(columns), strict=True)
            )
        except ValueError:
            return None
        return Names(columns, rows)


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows cut from a text: `values` and `missing` are rows x width."""

    layout: Layout
    names: Names
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
            for place in self.layout.places.tolist()
            if place >= 0 and not gone[place]
        ]


def layout_of(
    columns: Sequence[tuple[int, int, str]], gaps: Sequence[tuple[int, int]], mapping: ColumnMapping
) -> Layout | None:
    """Return the layout of a table if its first column names the row and the others count.

    `columns` are begin, end and name, `gaps` the blanks between them. None for a table that holds
    anything else: its lines are read one by one.
    """
    identity: list[Target] = []
    groups: dict[tuple[str, tuple[tuple[str, Any], ...]], dict[str, int]] = {}
    kinds: list[int | tuple[Any, str]] = []
    targets: dict[tuple[Any, str], Target] = {}
    keeps_others = "other" in column_names(mapping.table)
    for _, _, name in columns:
        target = mapping.resolve(name)
        if isinstance(target, bool):
            if not target and keeps_others:
                return None
            kinds.append(PASSED)
        elif target.column.name in IDENTITY:
            if target.column.name in {"ts", *(known.column.name for known in identity)}:
                return None
            identity.append(target)
            kinds.append(TEXT)
        else:
            group = groups.setdefault((target.table, target.fields), {})
            counts = target.parse is parse_whole and target.factor is None
            if not counts or target.column.name in group:
                return None
            group[target.column.name] = len(kinds)
            targets[(target.table, target.fields), target.column.name] = target
            kinds.append(((target.table, target.fields), target.column.name))
    if not groups or kinds[0] != TEXT:
        return None
    families = _families({key: tuple(group) for key, group in groups.items()})
    order = [
        ((family.table, fields), name)
        for family in families
        for fields in family.fields
        for name in family.columns
    ]
    place_of = {key: place for place, key in enumerate(order)}
    places = [kind if isinstance(kind, int) else place_of[kind] for kind in kinds]
    return Layout(
        begins=np.array([begin for begin, _, _ in columns], np.int64),
        ends=np.array([*(begin for begin, _ in gaps), columns[-1][0] + 1], np.int64),
        places=np.array(places, np.int64),
        width=len(order),
        families=tuple(families),
        identity=tuple(identity),
        targets=tuple(targets[key] for key in order),
    )


def _families(groups: Mapping[tuple[str, Any], tuple[str, ...]]) -> list[Family]:
    """Put the rows of a line that fill the same columns together."""
    alike: dict[tuple[str, tuple[str, ...]], list[Any]] = {}
    for (table, fields), columns in groups.items():
        alike.setdefault((table, columns), []).append(fields)
    families: list[Family] = []
    first = 0
    for (table, columns), fields in alike.items():
        families.append(Family(table, tuple(fields), columns, first))
        first += families[-1].width
    return families


def cut_rows(data: Bytes, at: int, layout: Layout) -> Cut | None:
    """Cut the rows that stand from `at` on, up to a line in doubt; None if that is the first."""
    from fabricobs.formats import ruled_kernel

    left = len(data) - at
    width = layout.width
    room = min(left // int(layout.ends[-1]) + 1, _MOST_ROWS)
    values = np.empty((room, width), np.int64)
    missing = np.empty((room, width), np.bool_)
    texts = np.empty(min(left, _MOST_TEXT) + len(layout.places), np.uint8)
    rows, end, written, absent = ruled_kernel.cut_rows(
        data, at, layout.begins, layout.ends, layout.places, values, missing, texts
    )
    names = layout.names_of(texts[:written].tobytes()) if rows else None
    if names is None:
        return None
    return Cut(layout, names, values[:rows], missing[:rows] if absent else None, end)
