"""Records: CSV, JSON lines and Parquet, whose columns or keys have names.

`csv_records`, `json_records` and `parquet_records` give columns of the source, block by block;
here they become columns of a table, and every row is accounted for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fabricobs.formats.columns import coded, constant
from fabricobs.formats.context import Context, column_names
from fabricobs.formats.definition import Block, Definition
from fabricobs.formats.limits import LIMITS, in_mib
from fabricobs.formats.mapping import ColumnMapping, Target
from fabricobs.formats.records.columns import Cells
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.source import LineBlock
from fabricobs.formats.values import Unfit

_UnfitCell = tuple[int, str, Unfit]  # row, column, value
_Refused = dict[int, str]  # by row, why


class RecordFormat:
    """A compiled csv, jsonl or parquet definition."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.required = definition.detect.columns
        self.blocks = tuple((block, ColumnMapping(block)) for block in definition.block)

    def sources_of(self, keys: Sequence[str]) -> dict[str, Target]:
        """Return which of the source's keys fill columns of the first block."""
        mapping = self.blocks[0][1]
        return {k: t for k in keys if isinstance(t := mapping.resolve(k), Target)}

    def fits(self, keys: list[str]) -> bool:
        """Say whether the keys fill every column the definition demands."""
        filled = {target.column.name for target in self.sources_of(keys).values()}
        return set(self.required) <= filled


@dataclass(slots=True)
class RecordSink:
    """Where the records of one file go."""

    record_format: RecordFormat
    context: Context
    rows: Rows
    tally: Tally
    dropped: tuple[str, ...] = ()  # columns of the source that nothing keeps

    def miss(self, number: int, reason: str, text: str) -> None:
        """Count a line that is no record."""
        self.tally.miss(number, f"{self.record_format.name}: {reason}", text)

    def count_overlong(self, block: LineBlock) -> None:
        """Count the lines that a block leaves out."""
        for number in block.overlong:
            self.tally.miss(number, f"longer than {in_mib(LIMITS.line_bytes)}", "")

    def add(
        self,
        position: int,
        cells: Mapping[str, Cells],
        numbers: NDArray[np.int64],
        text_of: Callable[[int], str],
    ) -> None:
        """Add the rows of a block of the definition, given as columns of the source.

        `numbers` are the lines they stand in, `text_of` gives the text of a line. Rows that lack a
        required column are counted as missed.
        """
        block, mapping = self.record_format.blocks[position]
        if block.table is None:
            self.tally.skip(len(numbers), f"records {block.where or self.record_format.name}")
            return
        columns, unfit = self._filled(cells, mapping)
        refused = {} if block.where is not None else self._incomplete(columns)
        for row, name, value in unfit:
            if row in refused:
                if name in self.record_format.required:
                    refused[row] = f"{name} {value}"
            elif not columns[name][row].is_valid:  # nor does another key fill it
                self.rows.unfit.add(self.context.file_id, int(numbers[row]), name, value)
        if refused:
            for row in sorted(refused):
                number = int(numbers[row])
                self.miss(number, refused[row], text_of(number))
            kept = np.setdiff1d(np.arange(len(numbers)), np.fromiter(refused, np.int64))
            numbers = numbers[kept]
            columns = {name: column.take(pa.array(kept)) for name, column in columns.items()}
        self.tally.read(len(numbers))
        self.context.drop_fields(self.dropped, len(numbers))
        if len(numbers):
            columns["line"] = pa.array(numbers)
            self.rows.add_frame(block.table, self._complete(columns, block, block.table))

    def _filled(
        self, cells: Mapping[str, Cells], mapping: ColumnMapping
    ) -> tuple[dict[str, pa.Array], list[_UnfitCell]]:
        """Convert the cells; of several that fill one column the first that says something counts.

        The order is the definition's; the sum of parts comes last.
        Returns also the cells that do not fit.
        """
        columns: dict[str, pa.Array] = {}
        sums: dict[str, pa.Array] = {}
        unfit: list[_UnfitCell] = []
        for source, target in mapping.sources().items():
            if source not in cells:
                continue
            name = target.column.name
            column, wrong = cells[source].fill(target, self.context.zone)
            unfit.extend((row, name, value) for row, value in wrong.items())
            if target.is_part:
                sums[name] = _sum(sums[name], column) if name in sums else column
                continue
            known = columns.get(name)
            columns[name] = column if known is None else _first_given(known, column)
        for name, column in sums.items():
            columns[name] = _first_given(columns[name], column) if name in columns else column
        return columns, unfit

    def _incomplete(self, columns: Mapping[str, pa.Array]) -> _Refused:
        """Return the records that lack a required column, and why they are refused."""
        present = [name for name in self.record_format.required if name in columns]
        reason = f"{', '.join(present)} must all be there"
        return {
            row: reason
            for name in present
            if columns[name].null_count
            for row in np.flatnonzero(columns[name].is_null()).tolist()
        }

    def _complete(self, columns: dict[str, pa.Array], block: Block, table: str) -> pa.Table:
        base = self.context.base(table, self.record_format.name, snapshot=False)
        base.update((k, v) for k, v in block.set.items() if k in column_names(table))
        count = len(columns["line"])
        ts = columns.get("ts")
        if ts is not None:
            told = [block.set.get("ts_source", "inline"), base["ts_source"]]
            silent = np.asarray(ts.is_null()) if ts.null_count else np.zeros(count, np.bool_)
            columns["ts_source"] = coded(silent.astype(np.int32), told)
        given: dict[str, pa.Array] = {
            name: constant(value, count) for name, value in base.items() if value is not None
        }
        # What a record leaves out is what its file is known to be.
        for name, column in columns.items():
            given[name] = _first_given(column, given[name]) if name in given else column
        return pa.table(given)


def _sum(first: pa.Array, second: pa.Array) -> pa.Array:
    """Add what is there; a part that a record leaves out took no time."""
    return pc.coalesce(pc.add(first, second), first, second)


def _first_given(first: pa.Array, second: pa.Array) -> pa.Array:
    if not first.null_count or second.null_count == len(second):
        return first
    if first.null_count == len(first):
        return second
    if pa.types.is_dictionary(first.type):
        plain = pc.coalesce(first.dictionary_decode(), second.dictionary_decode())
        return plain.dictionary_encode()
    return pc.coalesce(first, second)
