"""Columns of records: cells as Python read them, or as the compiled readers found them.

Whoever gives them, a column of the source becomes a column of a table, whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fabricobs.formats.compiled import ffi
from fabricobs.formats.documents.jsontext import loads
from fabricobs.formats.mapping import Target
from fabricobs.formats.records.values import from_json, from_text
from fabricobs.formats.values import EARLIEST_US, LATEST_US, Unfit
from fabricobs.store.tables import Type

Wide = NDArray[np.int64]
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
_LIMIT = float(1 << 63)


class Cells(Protocol):
    """A column of the source."""

    def fill(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Wrong]:
        """Return the column of the table, times in microseconds, and what is wrong, by row."""
        ...

    def take(self, rows: NDArray[np.int64]) -> "Cells":
        """Return the cells of some rows."""
        ...


@dataclass(frozen=True, slots=True)
class ReadCells:
    """Cells that Python read: texts of CSV, or values of JSON; None for none."""

    values: Sequence[Any]
    of_json: bool

    def fill(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Wrong]:
        """Convert each value."""
        wrong: Wrong = {}
        if self.of_json:
            filled = [from_json(value, target, zone) for value in self.values]
        else:
            known = {text: from_text(text, target, zone) for text in {*self.values} - {None}}
            filled = [known.get(text) for text in self.values]
        filled = fitting(filled, wrong)
        return pa.array(filled, ARROW[target.column.type]), wrong

    def take(self, rows: Wide) -> "ReadCells":
        """Return the cells of some rows."""
        return ReadCells([self.values[row] for row in rows.tolist()], self.of_json)


def fitting(values: list[Any], wrong: Wrong) -> list[Any]:
    """Return the values, None for those that do not fit, which are noted."""
    unfit = {row: value for row, value in enumerate(values) if isinstance(value, Unfit)}
    if not unfit:
        return values
    wrong |= unfit
    return [None if row in unfit else value for row, value in enumerate(values)]


@dataclass(frozen=True, slots=True)
class PackedCells:
    """Cells that the compiled readers found in a block, packed as `pieces` says; -1 for none."""

    data: NDArray[np.uint8]
    cells: Wide
    of_json: bool

    def take(self, rows: Wide) -> "PackedCells":
        """Return the cells of some rows."""
        return PackedCells(self.data, self.cells[rows], self.of_json)

    def value(self, row: int) -> Any:
        """Return one value of JSON, None for none."""
        at, length = divmod(int(self.cells[row]), 1 << ffi.LENGTH_BITS)
        return (
            None
            if at < 0
            else loads(self.data[at : at + length].tobytes().decode("utf-8", "replace"))
        )

    def fill(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Wrong]:
        """Convert by compiled code; what that leaves is converted by Python, each text once."""
        kind = target.column.type
        states = np.empty(len(self.cells), np.uint8)
        if kind == "TIMESTAMP":
            whole = np.empty(len(self.cells), np.int64)
            left = ffi.time_cells(
                self.data, self.cells, zone is UTC, EARLIEST_US, LATEST_US, whole, states
            )
            return self._completed(whole, states, left, target, zone)
        if kind == "BIGINT" and target.is_plain:
            whole = np.empty(len(self.cells), np.int64)
            left = ffi.whole_cells(self.data, self.cells, whole, states)
            if target.factor is not None:
                scaled = whole * target.factor
                beyond = np.abs(scaled) >= _LIMIT
                scaled[beyond], states[beyond] = 0.0, ffi.LEFT
                left += int(np.count_nonzero(beyond))
                whole = np.rint(scaled).astype(np.int64)
            return self._completed(whole, states, left, target, zone)
        if kind == "DOUBLE" and target.is_plain:
            numbers = np.empty(len(self.cells), np.float64)
            left = ffi.number_cells(self.data, self.cells, numbers, states)
            if target.factor is not None:
                numbers *= target.factor
            return self._completed(numbers, states, left, target, zone)
        return self._by_text(target, zone)

    def _completed(
        self,
        values: NDArray[Any],
        states: NDArray[np.uint8],
        left: int,
        target: Target,
        zone: tzinfo,
    ) -> tuple[pa.Array, Wrong]:
        """Return a column of numbers, the cells that are left converted by Python."""
        wrong: Wrong = {}
        if left:
            rows = np.flatnonzero(states == ffi.LEFT)
            codes, texts = self._distinct(rows)
            given = self._decoded(texts, codes, rows, target, zone, wrong)
            values[rows] = np.array([0 if v is None else v for v in given], values.dtype)[codes]
            missing = np.array([value is None for value in given])[codes]
            states[rows[missing]] = ffi.MISSING
        missing = states == ffi.MISSING
        return pa.array(values, mask=missing if missing.any() else None), wrong

    def _by_text(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Wrong]:
        """Return a column whose distinct texts are converted by Python."""
        wrong: Wrong = {}
        rows = np.flatnonzero(self.cells >= 0)
        codes, texts = self._distinct(rows)
        given = self._decoded(texts, codes, rows, target, zone, wrong)
        if len(rows) < len(self.cells):
            of_present, codes = codes, np.full(len(self.cells), len(given), np.int32)
            codes[rows] = of_present
            given.append(None)
        return coded(codes, given, ARROW[target.column.type]), wrong

    def _distinct(self, rows: Wide) -> tuple[NDArray[np.int32], list[str]]:
        """Return the number of each row's text, and the texts."""
        packed = np.ascontiguousarray(self.cells[rows])
        codes = np.empty(len(packed), np.int32)
        seen = np.empty(len(packed), np.int64)
        slots = np.full(1 << (2 * len(packed)).bit_length(), -1, np.int64)
        known = ffi.intern(self.data, packed, codes, slots, seen)
        begins, lengths = seen[:known] >> ffi.LENGTH_BITS, seen[:known] & ffi.LENGTHS
        texts = [
            self.data[begin : begin + length].tobytes().decode("utf-8", "replace")
            for begin, length in zip(begins.tolist(), lengths.tolist(), strict=True)
        ]
        return codes, texts

    def _decoded(
        self,
        texts: list[str],
        codes: NDArray[np.int32],
        rows: Wide,
        target: Target,
        zone: tzinfo,
        wrong: Wrong,
    ) -> list[Any]:
        failed: Wrong = {}
        if self.of_json:
            given = [from_json(loads(text), target, zone) for text in texts]
        else:
            given = [from_text(text, target, zone) for text in texts]
        given = fitting(given, failed)
        if failed:
            for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
                if code in failed:
                    wrong[row] = failed[code]
        return given


def coded(codes: NDArray[np.int32], values: Sequence[Any], type_: pa.DataType = CODES) -> pa.Array:
    """Return the column whose row `i` is `values[codes[i]]`, null where that is None."""
    if type_ != CODES:
        return pa.array(values, type_).take(pa.array(codes))
    texts = pa.array([value for value in values if value is not None], pa.string())
    if len(texts) == len(values):
        return pa.DictionaryArray.from_arrays(codes, texts)
    missing = np.array([value is None for value in values])
    places = (np.cumsum(~missing) - 1).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(places[codes], mask=missing[codes]), texts)


def constant(value: Any, count: int) -> pa.Array:
    """Return a column of one value."""
    if isinstance(value, str):
        return coded(np.zeros(count, np.int32), [value])
    return pa.repeat(pa.scalar(value), count)
