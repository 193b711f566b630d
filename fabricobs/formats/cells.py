"""Rows from keys and values: what a table's line and a counter dump have in common."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from fabricobs.formats.context import Context, column_names
from fabricobs.formats.definition import Block
from fabricobs.formats.joins import Join
from fabricobs.formats.mapping import IDENTITY, ColumnMapping, Target
from fabricobs.formats.outputs.column_batches import ColumnBatch, Moment
from fabricobs.formats.outputs.dumps import CachedRun, RunRow
from fabricobs.formats.outputs.layouts import Part, RowSlice
from fabricobs.formats.rows import Rows
from fabricobs.formats.templates import compile_template
from fabricobs.formats.values import Value, parse_whole

_MOST_OPEN_ROWS = 5_000
# What tells apart rows of one table: of GPUs also the host, which other rows call their device.
_ROW_KEY = (*IDENTITY, "host", "gpu")
# What every row of a table begins with.
StartOf = Callable[[str], Mapping[str, Any]]


class CellBlock:
    """A compiled block: its mapping, header templates and pair template."""

    def __init__(self, block: Block, format_name: str) -> None:
        self.format_name = format_name
        self.set = block.set
        self.join = Join(block.join)
        self.skip = tuple(compile_template(source) for source in block.skip)
        self.mapping = ColumnMapping(block)
        self.headers = tuple(compile_template(source) for source in block.header)
        self.openers = tuple(compile_template(source) for source in block.opens)
        self.pairs = tuple(compile_template(pair, default_type="text") for pair in block.pair)


class CellRows:
    """Collects cells into rows, one a table and identity.

    Cells of one identity that fill different columns share a row: a PFC dump prints received
    and sent frames in two tables. A cell whose column is taken belongs to the next capture and
    starts a new row, unless `overwrite` says that the last of two equal keys counts.
    """

    def __init__(self, context: Context, rows: Rows, *, overwrite: bool = False) -> None:
        self._context = context
        self._rows = rows
        self._overwrite = overwrite
        self._open: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._starts: dict[tuple[int, str], tuple[int, dict[str, Any]]] = {}
        self._stacks: list[ColumnBatch] = []
        self._taken: dict[Moment, set[Part]] = {}

    def add_run(
        self, block: CellBlock, taken: CachedRun, number: int, given: Mapping[str, Any]
    ) -> bool:
        """Add the cells of a run of lines, the first of which is `number`.

        Gives the rows that `add` gives line by line; False if only that can tell.
        """
        run = taken.run
        if len(self._open) + len(run.rows) > _MOST_OPEN_ROWS:
            return False
        values: list[Any] = [int(number) if number else None for number in taken.numbers]
        for place, value in run.constant:
            values[place] = value
        for place, target in run.converted:
            try:
                values[place] = target.convert(taken.numbers[place].decode())
            except ValueError:
                return False
            if values[place] is None:
                return False
        start_of = partial(self._start, block)
        filling = [
            (self._row(start_of, f.table, {**given, **f.identity}, number + f.first), f)
            for f in run.rows.values()
        ]
        if not self._overwrite and any(_has_any(row, filled) for row, filled in filling):
            return False
        for row, filled in filling:
            for column, place in filled.columns.items():
                row[column] = values[place]
            if filled.others:
                others = row.setdefault("other", {})
                others.update((key, values[place]) for key, place in filled.others.items())
        self._context.drop_fields(run.dropped)
        return True

    def add(
        self,
        block: CellBlock,
        cells: Iterable[tuple[str, str]],
        number: int,
        given: Mapping[str, Any],
    ) -> int:
        """Add the cells of one line and return how many are known; ValueError for garbage.

        Of several that fill one column the first that says something counts.
        """
        shared = dict(given)
        measured: dict[Any, tuple[Target, Any]] = {}
        others: dict[str, Value] = {}
        dropped: list[str] = []
        known = 0
        for key, text in cells:
            target = block.mapping.resolve(key)
            if isinstance(target, Target):
                value = target.convert(text)
                if target.column.name in IDENTITY:
                    shared[target.column.name] = value
                elif value is not None:
                    measured.setdefault(
                        (target.table, target.column.name, target.fields), (target, value)
                    )
            elif target is False and (counted := other_counter(key, text)):
                others |= counted
            else:
                dropped.append(key)
            known += target is not False or key in others
        if known:
            self._context.drop_fields(dropped)
        self.add_values(block, measured.values(), others, number, shared)
        return known

    def add_values(
        self,
        block: CellBlock,
        measured: Iterable[tuple[Target, Any]],
        others: Mapping[str, Value],
        number: int,
        shared: Mapping[str, Any],
    ) -> None:
        """Add values of one line; `others` have no column, `shared` says whose all are."""
        self._unstack()
        start_of = partial(self._start, block)
        self._put(start_of, shared, measured, number)
        table = block.mapping.table
        if others and "other" in column_names(table):
            self._put_others(start_of, table, shared, others, number)
        else:
            self._context.drop_fields(others)

    def add_cut(self, block: CellBlock, cut: RowSlice, number: int) -> None:
        """Add rows that were cut at once; `number` is the line of the first."""
        self._context.drop_fields(cut.layout.dropped, cut.lines)
        starts = {f.table: self._start(block, f.table) for f in cut.layout.families}
        stack = ColumnBatch(starts, cut.names, [cut], [number])
        if self._open or not cut.names.differ:
            self._unstack()
            self._put_rows(stack)
        elif self._stacks and self._stacks[-1].takes(cut, starts):
            self._stacks[-1].cuts.append(cut)
            self._stacks[-1].numbers.append(number)
        elif self._stacks and not self._is_apart(stack):
            self._unstack()
            self._put_rows(stack)
        else:
            self._stacks.append(stack)

    def flush(self) -> None:
        """Hand over the rows collected so far."""
        for key, row in self._open.items():
            self._rows.add(key[0], row)
        self._open.clear()
        for stack in self._stacks:
            self._rows.add_stack(stack)
        self._stacks.clear()
        self._taken.clear()

    def _is_apart(self, stack: ColumnBatch) -> bool:
        """Say whether none of its rows may share a row with those stacked before; note them."""
        if not self._taken:
            for earlier in self._stacks:
                self._take(earlier)
        return self._take(stack)

    def _take(self, stack: ColumnBatch) -> bool:
        """Note the rows of a stack; say whether none of them was there."""
        apart = True
        for moment, parts in stack.identities.items():
            taken = self._taken.setdefault(moment, set())
            apart = apart and taken.isdisjoint(parts)
            taken |= parts
        return apart

    def _unstack(self) -> None:
        """Open the rows stacked so far: what comes next may belong to them."""
        batches, self._stacks = self._stacks, []
        self._taken.clear()
        for stack in batches:
            self._put_rows(stack)

    def _put_rows(self, stack: ColumnBatch) -> None:
        for cut, first in zip(stack.cuts, stack.numbers, strict=True):
            for place, row in enumerate(cut.names.rows):
                shared = dict(zip(cut.names.columns, row, strict=True))
                self._put(stack.starts.__getitem__, shared, cut.cells(place), first + place)

    def _put(
        self,
        start_of: StartOf,
        shared: Mapping[str, Any],
        measured: Iterable[tuple[Target, Any]],
        number: int,
    ) -> None:
        if len(self._open) >= _MOST_OPEN_ROWS:
            self.flush()
        # The cells of a line share few rows: each is looked up once.
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        for target, value in measured:
            place = (target.table, *target.fields)
            row = found.get(place)
            if row is None:
                identity = {**shared, **dict(target.fields)}
                row = self._row(start_of, target.table, identity, number)
            if row.get(target.column.name) is not None and not self._overwrite:
                identity = {**shared, **dict(target.fields)}
                row = self._row(start_of, target.table, identity, number, fresh=True)
            found[place] = row
            row[target.column.name] = value

    def _put_others(
        self,
        start_of: StartOf,
        table: str,
        identity: Mapping[str, Any],
        others: Mapping[str, Value],
        number: int,
    ) -> None:
        row = self._row(start_of, table, identity, number)
        taken = row.get("other") or {}
        if not self._overwrite and not others.keys().isdisjoint(taken):
            row = self._row(start_of, table, identity, number, fresh=True)
        row.setdefault("other", {}).update(others)

    def _row(
        self,
        start_of: StartOf,
        table: str,
        identity: Mapping[str, Any],
        number: int,
        *,
        fresh: bool = False,
    ) -> dict[str, Any]:
        names = column_names(table)
        start = start_of(table)
        told = {name: value for name, value in identity.items() if name in names}
        around = self._context.around(table, snapshot=_is_snapshot(table))
        if around:
            # The lines of one row are stamped one by one: its time is that of the first.
            start = {**start, **around, "ts": start.get("ts")}
        key = (table, *[told.get(name, start.get(name)) for name in _ROW_KEY])
        row = self._open.get(key)
        if row is not None and not fresh:
            return row
        if row is not None:
            self._rows.add(table, row)
        row = self._open[key] = {**start, **around, **told, "line": number}
        if identity.get("ts") is not None:
            row["ts_source"] = identity.get("ts_source", "inline")
        return row

    def _start(self, block: CellBlock, table: str) -> dict[str, Any]:
        """Return what every row of a block begins with, made anew when what is kept changes."""
        key = (id(block), table)
        found = self._starts.get(key)
        if found is not None and found[0] == self._context.generation:
            return found[1]
        names = column_names(table)
        start = self._context.start(table, block.format_name, snapshot=_is_snapshot(table))
        start.update((name, value) for name, value in block.set.items() if name in names)
        self._starts[key] = (self._context.generation, start)
        return start


def other_counter(key: str, text: str) -> dict[str, Value]:
    """Return a counter without a column by its name; nothing if the text is no count."""
    digits = text.replace(",", "")
    return {key: parse_whole(digits)} if digits.isdecimal() else {}


def _is_snapshot(table: str) -> bool:
    """Say whether rows are readings; what has a step is of a log, whose name says when it began."""
    return "step" not in column_names(table)


def _has_any(row: Mapping[str, Any], filled: RunRow) -> bool:
    """Say whether a row has a value already where a run would put one."""
    others = row.get("other") or {}
    return any(row.get(column) is not None for column in filled.columns) or any(
        key in others for key in filled.others
    )
