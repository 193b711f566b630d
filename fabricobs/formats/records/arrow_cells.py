"""Columns of records as Parquet holds them: typed."""

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fabricobs.formats.mapping import Target
from fabricobs.formats.records.columns import ARROW, CODES, Wrong, coded, fitting
from fabricobs.formats.records.values import from_json, from_text
from fabricobs.formats.values import EARLIEST_US, LATEST_US, MISFITS, OUT_OF_AGE, Unfit

_LIMIT = float(1 << 63)
_MICROS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


@dataclass(frozen=True, slots=True)
class ArrowCells:
    """A typed column."""

    values: pa.Array

    def take(self, rows: NDArray[np.int64]) -> "ArrowCells":
        """Return the cells of some rows."""
        return ArrowCells(self.values.take(pa.array(rows)))

    def fill(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Wrong]:
        """Convert by type; a value that has no such form is null and told. NaN is no value."""
        values, wanted = self.values, ARROW[target.column.type]
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        try:
            if _is_read_as_text(values.type, target):
                return _from_texts(values.cast(pa.string()), target, zone)
            if target.column.type == "TIMESTAMP":
                filled = _moments(values, zone)
            elif wanted == CODES:
                filled = values.cast(pa.string()).dictionary_encode()
            else:
                filled = _numbers(values, target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            filled = pa.nulls(len(values), wanted)
        lost = pc.and_not(filled.is_null(), values.is_null(nan_is_null=True))
        return filled, {
            row: _unfit(values[row], target, zone) for row in np.flatnonzero(lost).tolist()
        }


def _is_read_as_text(given: pa.DataType, target: Target) -> bool:
    """Say whether a column is read as CSV is: texts, decimals, and what a unit is converted of."""
    if pa.types.is_string(given) or pa.types.is_large_string(given):
        return True
    converts = not target.is_plain and not pa.types.is_nested(given)
    numeric = target.column.type in {"BIGINT", "DOUBLE"}
    return numeric and (pa.types.is_decimal(given) or converts)


def _from_texts(values: pa.Array, target: Target, zone: tzinfo) -> tuple[pa.Array, Wrong]:
    """Return a column of texts, each distinct one converted once."""
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    unfit: Wrong = {}
    given = fitting([from_text(text, target, zone) for text in distinct], unfit)
    codes = encoded.indices.fill_null(len(given)).to_numpy(zero_copy_only=False)
    filled = coded(codes, [*given, None], ARROW[target.column.type])
    if not unfit:
        return filled, {}
    return filled, {row: unfit[code] for row, code in enumerate(codes.tolist()) if code in unfit}


def _unfit(scalar: pa.Scalar, target: Target, zone: tzinfo) -> Unfit:
    """Return what stands for a value that is lost."""
    if pa.types.is_nested(scalar.type) or pa.types.is_binary(scalar.type):
        return Unfit(f"a {scalar.type}", "cannot fill this column")
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):
        value = scalar.value  # a time that no calendar has
    if target.column.type == "TIMESTAMP":
        return Unfit(str(value), OUT_OF_AGE)
    told = from_json(value, target, zone) if isinstance(value, bool | int | float) else None
    return told if isinstance(told, Unfit) else Unfit(str(value), MISFITS[target.column.type])


def _numbers(values: pa.Array, target: Target) -> pa.Array:
    """Return numbers or truth values as the column holds them, null where it cannot."""
    wanted = ARROW[target.column.type]
    if wanted == pa.bool_():
        if not pa.types.is_boolean(values.type):
            values = _where(pc.is_in(values, pa.array([0, 1], values.type)), values)
        return values.cast(wanted)
    if pa.types.is_boolean(values.type):
        raise pa.ArrowInvalid("a truth value is no number")
    if target.factor is not None:
        values = pc.multiply(values.cast(pa.float64(), safe=False), target.factor)
        values = pc.round(values) if wanted == pa.int64() else values
    if wanted == pa.int64() and pa.types.is_floating(values.type):
        fits = pc.and_(pc.less(pc.abs(values), _LIMIT), pc.equal(pc.floor(values), values))
        values = _where(fits, values)
    if wanted == pa.int64() and values.type == pa.uint64() and not target.column.is_counter:
        values = _where(pc.less(values, pa.scalar(1 << 63, pa.uint64())), values)
    # A counter of 2^63 and above wraps to its negative.
    return values.cast(wanted, safe=False)


def _where(held: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(held, values, pa.scalar(None, values.type))


def _moments(values: pa.Array, zone: tzinfo) -> pa.Array:
    """Return times, or epochs of any unit, as microseconds UTC; null outside 1990 to 2100."""
    if not pa.types.is_temporal(values.type):
        return _epochs(values)
    if pa.types.is_date(values.type):
        values = values.cast(pa.timestamp("s"))
    if not pa.types.is_timestamp(values.type):
        raise pa.ArrowNotImplementedError(f"{values.type} is no time")
    count = values.cast(pa.int64()).cast(pa.float64(), safe=False)
    micros = pc.multiply(count, _MICROS[values.type.unit])
    of_age = pc.and_(pc.greater_equal(micros, EARLIEST_US), pc.less_equal(micros, LATEST_US))
    times = pc.if_else(of_age, values, pa.scalar(None, values.type))
    times = times.cast(pa.timestamp("us", values.type.tz), safe=False)
    if times.type.tz is None:
        times = pc.assume_timezone(times, str(zone), ambiguous="earliest", nonexistent="earliest")
    return times.cast(pa.int64())


def _epochs(values: pa.Array) -> pa.Array:
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    given: NDArray[Any] = values.fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        sound = (given >= 0) & (given < _LIMIT)
        size = np.where(sound, given, 0)
        micros = np.select(
            [size < 1e11, size < 1e14, size < 1e17],
            [size * 1_000_000, size * 1000, size],
            size // 1000,
        ).astype(np.int64)
    of_age = sound & (micros >= EARLIEST_US) & (micros <= LATEST_US)
    return pa.array(micros, mask=~of_age | np.asarray(values.is_null()))
