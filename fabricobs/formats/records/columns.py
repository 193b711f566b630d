"""Columns of records: cells as Python read them, as the compiled readers found them, or Arrow's.

Whoever gives them, a column of the source becomes a column of a table, whole.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fabricobs.formats.compiled import pieces
from fabricobs.formats.mapping import Target
from fabricobs.formats.records.values import from_json, from_text
from fabricobs.formats.values import EARLIEST_US, LATEST_US, VALUE_TYPES
from fabricobs.store.tables import Type

Wide = NDArray[np.int64]
# By row: why a value of a record cannot be what its column wants.
Refused = dict[int, str]

_CODES = pa.dictionary(pa.int32(), pa.string())
_ARROW: dict[Type, pa.DataType] = {
    "VARCHAR": _CODES,
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.int64(),
}
_WHOLE = frozenset({VALUE_TYPES["count"].parse, VALUE_TYPES["int"].parse})
_NUMBER = VALUE_TYPES["number"].parse
_LIMIT = float(1 << 63)


class Cells(Protocol):
    """A column of the source."""

    def fill(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Refused]:
        """Return the column of the table, times in microseconds, and the rows refused."""
        ...

    def take(self, rows: NDArray[np.int64]) -> "Cells":
        """Return the cells of some rows."""
        ...


@dataclass(frozen=True, slots=True)
class ReadCells:
    """Cells that Python read: texts of CSV, or values of JSON; None for none."""

    values: Sequence[Any]
    of_json: bool

    def fill(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Refused]:
        """Convert each value."""
        refused: Refused = {}
        if self.of_json:
            filled = [_converted(v, target, zone, i, refused) for i, v in enumerate(self.values)]
        else:
            known = {text: from_text(text, target, zone) for text in {*self.values} - {None}}
            filled = [known.get(text) for text in self.values]
        return pa.array(filled, _ARROW[target.column.type]), refused

    def take(self, rows: Wide) -> "ReadCells":
        """Return the cells of some rows."""
        return ReadCells([self.values[row] for row in rows.tolist()], self.of_json)


def _converted(value: Any, target: Target, zone: tzinfo, row: int, refused: Refused) -> Any:
    try:
        return from_json(value, target, zone)
    except (ValueError, TypeError, OverflowError) as error:
        refused[row] = str(error)
        return None


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
        at, length = divmod(int(self.cells[row]), 1 << pieces.LENGTH_BITS)
        return (
            None
            if at < 0
            else json.loads(self.data[at : at + length].tobytes().decode("utf-8", "replace"))
        )

    def fill(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Refused]:
        """Convert by compiled code; what that leaves is converted by Python, each text once."""
        kind = target.column.type
        states = np.empty(len(self.cells), np.uint8)
        if kind == "TIMESTAMP":
            whole = np.empty(len(self.cells), np.int64)
            left = pieces.time_cells(
                self.data, self.cells, zone is UTC, EARLIEST_US, LATEST_US, whole, states
            )
            return self._completed(whole, states, left, target, zone)
        if kind == "BIGINT" and (self.of_json or target.parse in _WHOLE):
            whole = np.empty(len(self.cells), np.int64)
            left = pieces.whole_cells(self.data, self.cells, whole, states)
            if target.factor is not None:
                scaled = whole * target.factor
                beyond = np.abs(scaled) >= _LIMIT
                scaled[beyond], states[beyond] = 0.0, pieces.MISSING
                whole = scaled.astype(np.int64)
            return self._completed(whole, states, left, target, zone)
        if kind == "DOUBLE" and (self.of_json or target.parse is _NUMBER):
            numbers = np.empty(len(self.cells), np.float64)
            left = pieces.number_cells(self.data, self.cells, numbers, states)
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
    ) -> tuple[pa.Array, Refused]:
        """Return a column of numbers, the cells that are left converted by Python."""
        refused: Refused = {}
        if left:
            rows = np.flatnonzero(states == pieces.LEFT)
            codes, texts = self._distinct(rows)
            given = self._decoded(texts, codes, rows, target, zone, refused)
            values[rows] = np.array([0 if v is None else v for v in given], values.dtype)[codes]
            missing = np.array([value is None for value in given])[codes]
            states[rows[missing]] = pieces.MISSING
        missing = states == pieces.MISSING
        return pa.array(values, mask=missing if missing.any() else None), refused

    def _by_text(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Refused]:
        """Return a column whose distinct texts are converted by Python."""
        refused: Refused = {}
        rows = np.flatnonzero(self.cells >= 0)
        codes, texts = self._distinct(rows)
        given = self._decoded(texts, codes, rows, target, zone, refused)
        if len(rows) < len(self.cells):
            of_present, codes = codes, np.full(len(self.cells), len(given), np.int32)
            codes[rows] = of_present
            given.append(None)
        return coded(codes, given, _ARROW[target.column.type]), refused

    def _distinct(self, rows: Wide) -> tuple[NDArray[np.int32], list[str]]:
        """Return the number of each row's text, and the texts."""
        packed = np.ascontiguousarray(self.cells[rows])
        codes = np.empty(len(packed), np.int32)
        seen = np.empty(len(packed), np.int64)
        slots = np.full(1 << (2 * len(packed)).bit_length(), -1, np.int64)
        known = pieces.intern(self.data, packed, codes, slots, seen)
        begins, lengths = seen[:known] >> pieces.LENGTH_BITS, seen[:known] & pieces.LENGTHS
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
        refused: Refused,
    ) -> list[Any]:
        if not self.of_json:
            return [from_text(text, target, zone) for text in texts]
        failed: Refused = {}
        given = [
            _converted(json.loads(text), target, zone, number, failed)
            for number, text in enumerate(texts)
        ]
        if failed:
            for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
                if code in failed:
                    refused[row] = failed[code]
        return given


def coded(codes: NDArray[np.int32], values: Sequence[Any], type_: pa.DataType = _CODES) -> pa.Array:
    """Return the column whose row `i` is `values[codes[i]]`, null where that is None."""
    if type_ != _CODES:
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


@dataclass(frozen=True, slots=True)
class ArrowCells:
    """A typed column, as Parquet holds it."""

    values: pa.Array

    def take(self, rows: Wide) -> "ArrowCells":
        """Return the cells of some rows."""
        return ArrowCells(self.values.take(pa.array(rows)))

    def fill(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Refused]:
        """Convert by type; a value that has no such form is null."""
        values, wanted = self.values, _ARROW[target.column.type]
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if _is_text(values.type):
            return _texts(values, lambda text: from_text(text, target, zone), wanted), {}
        try:
            if target.column.type == "TIMESTAMP":
                return _moments(values, zone), {}
            if wanted == _CODES:
                return values.cast(pa.string()).dictionary_encode(), {}
            return _numbers(values, target.factor, wanted), {}
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return pa.nulls(len(values), wanted), {}


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _texts(values: pa.Array, convert: Callable[[str], Any], wanted: pa.DataType) -> pa.Array:
    encoded = values.dictionary_encode()
    given = [None if text is None else convert(text) for text in encoded.dictionary.to_pylist()]
    codes = encoded.indices.fill_null(len(given)).to_numpy(zero_copy_only=False)
    return coded(codes, [*given, None], wanted)


def _numbers(values: pa.Array, factor: float | None, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if factor is not None:
        values = pc.multiply(values.cast(pa.float64(), safe=False), factor)
    if wanted == pa.int64() and pa.types.is_floating(values.type):
        held = pc.and_(pc.is_finite(values), pc.less(pc.abs(values), _LIMIT))
        values = pc.if_else(held, values, pa.scalar(None, values.type))
    # An unsigned number of 2^63 and above wraps to its negative.
    return values.cast(wanted, safe=False)


def _moments(values: pa.Array, zone: tzinfo) -> pa.Array:
    """Return times, or epochs of any unit, as microseconds UTC."""
    if pa.types.is_temporal(values.type):
        times = values.cast(pa.timestamp("us", getattr(values.type, "tz", None)), safe=False)
        if times.type.tz is None:
            times = pc.assume_timezone(
                times, str(zone), ambiguous="earliest", nonexistent="earliest"
            )
        return times.cast(pa.int64())
    missing = np.asarray(values.is_null(nan_is_null=True))
    size = np.where(missing, 0, values.fill_null(0).to_numpy(zero_copy_only=False))
    micros = np.select(
        [size < 1e11, size < 1e14, size < 1e17], [size * 1_000_000, size * 1000, size], size // 1000
    )
    return pa.array(micros.astype(np.int64), mask=missing)
