"""Columns of records as Arrow read them: typed, or texts."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fabricobs.formats.columns import coded, nulls
from fabricobs.formats.mapping import Target
from fabricobs.formats.records.columns import ARROW, CODES, Wrong, fitting
from fabricobs.formats.records.values import from_json, from_text
from fabricobs.formats.values import EARLIEST_US, LATEST_US, MISFITS, OUT_OF_AGE, Unfit, Value

_LIMIT = float(1 << 63)
_MICROS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_REFUSED = (pa.ArrowInvalid, pa.ArrowNotImplementedError)
# Texts that Arrow reads as Python does.
_NUMBERS = {"BIGINT": "^-?[0-9]{1,18}$", "DOUBLE": r"^-?[0-9]+(\.[0-9]+)?$"}
_DAY_AND_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
# Six digits behind the point of seconds, three of milliseconds: what a microsecond needs.
_DIGITS_OF_EPOCH = 17


@dataclass(frozen=True, slots=True)
class ArrowCells:
    """A column that Arrow read."""

    values: pa.Array

    def fill(self, target: Target, zone: tzinfo) -> tuple[pa.Array, Wrong]:
        """Convert by type; a value that has no such form is null and reported."""
        values, wanted = self.values, ARROW[target.column.type]
        if values.null_count == len(values):
            return nulls(len(values), wanted), {}
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
        except _REFUSED:
            filled = pa.nulls(len(values), wanted)
        lost = pc.and_not(filled.is_null(), values.is_null(nan_is_null=True))
        return (
            _by_value(filled, values, lost, target, zone) if pc.any(lost).as_py() else (filled, {})
        )


def _by_value(
    filled: pa.Array, values: pa.Array, lost: pa.Array, target: Target, zone: tzinfo
) -> tuple[pa.Array, Wrong]:
    """Complete a column by what Python makes of the values that are lost."""
    rows = np.flatnonzero(lost).tolist()
    given = [_converted(values[row], target, zone) for row in rows]
    wrong = {r: value for r, value in zip(rows, given, strict=True) if isinstance(value, Unfit)}
    if len(wrong) < len(rows):
        told = pa.array([None if isinstance(v, Unfit) else v for v in given], filled.type)
        filled = pc.replace_with_mask(filled, lost, told)
    return filled, wrong


def _is_read_as_text(given: pa.DataType, target: Target) -> bool:
    """Say whether a column is read as CSV is: texts, decimals, and what a unit is converted of."""
    if pa.types.is_string(given) or pa.types.is_large_string(given):
        return True
    converts = not target.is_plain and not pa.types.is_nested(given)
    numeric = target.column.type in {"BIGINT", "DOUBLE"}
    return numeric and (pa.types.is_decimal(given) or converts)


def _from_texts(texts: pa.Array, target: Target, zone: tzinfo) -> tuple[pa.Array, Wrong]:
    """Return a column of texts; what Arrow does not read Python does, each distinct text once."""
    plain = _plain_values(texts, target, zone)
    left = texts if plain is None else _where(plain.is_null(), texts)
    if plain is not None and left.null_count == len(left):
        return plain, {}
    encoded = left.dictionary_encode()
    unfit: Wrong = {}
    distinct = encoded.dictionary.to_pylist()
    given = fitting([from_text(text, target, zone) for text in distinct], unfit)
    codes = encoded.indices.fill_null(len(given)).to_numpy(zero_copy_only=False)
    filled = coded(codes, [*given, None], ARROW[target.column.type])
    wrong = (
        {row: unfit[code] for row, code in enumerate(codes.tolist()) if code in unfit}
        if unfit
        else {}
    )
    return (filled if plain is None else pc.coalesce(plain, filled)), wrong


def _plain_values(texts: pa.Array, target: Target, zone: tzinfo) -> pa.Array | None:
    """Return numbers or times for the texts that Arrow reads as Python does, null for others."""
    if not target.is_plain or texts.null_count == len(texts):
        return None
    if target.column.type == "TIMESTAMP":
        with suppress(*_REFUSED):
            return _plain_times(texts, zone)
    if target.column.type not in _NUMBERS:
        return None
    wanted, pattern = ARROW[target.column.type], _NUMBERS[target.column.type]
    numbers = _parsed(texts, wanted, pattern)
    if wanted == pa.float64():
        numbers = _where(pc.is_finite(numbers), numbers)
    return _numbers(numbers, target)


def _parsed(texts: pa.Array, wanted: pa.DataType, pattern: str) -> pa.Array:
    if not _may_be_hexadecimal(texts):
        with suppress(pa.ArrowInvalid):
            return texts.cast(wanted)
    return _where(pc.match_substring_regex(texts, pattern), texts).cast(wanted)


def _may_be_hexadecimal(texts: pa.Array) -> bool:
    """Say whether a text may be a number to Arrow that it is not to Python: 0x1f."""
    data = texts.buffers()[2]
    return data is not None and bool(((np.frombuffer(data, np.uint8) | 32) == ord("x")).any())


def _plain_times(texts: pa.Array, zone: tzinfo) -> pa.Array | None:
    """Return the times of the texts that are written as the first one is, null for others."""
    first = texts.drop_null()[0].as_py()
    for pattern, read in _TIMES.items():
        if re.search(pattern, first):
            return read(_where(pc.match_substring_regex(texts, pattern), texts), zone)
    return None


def _local_times(texts: pa.Array, zone: tzinfo) -> pa.Array | None:
    return _moments(texts.cast(pa.timestamp("ns")), zone) if zone is UTC else None


_TIMES: dict[str, Callable[[pa.Array, tzinfo], pa.Array | None]] = {
    "^[0-9]{9,19}$": lambda texts, zone: _epochs(texts.cast(pa.int64())),
    r"^([0-9]{10}|[0-9]{13})\.[0-9]+$": lambda texts, zone: _epochs(
        pc.utf8_slice_codeunits(texts, 0, _DIGITS_OF_EPOCH).cast(pa.float64())
    ),
    f"{_DAY_AND_TIME}$": _local_times,
    f"{_DAY_AND_TIME}(Z|[+-][01][0-9](:?[0-5][0-9])?)$": lambda texts, zone: _moments(
        texts.cast(pa.timestamp("ns", "UTC")), zone
    ),
}


def _converted(scalar: pa.Scalar, target: Target, zone: tzinfo) -> Value:
    """Return what Python makes of a value."""
    if pa.types.is_nested(scalar.type) or pa.types.is_binary(scalar.type):
        return Unfit(f"a {scalar.type}", "cannot fill this column")
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):
        value = scalar.value  # a time that no calendar has
    if isinstance(value, bool | int | float) and not pa.types.is_temporal(scalar.type):
        return from_json(value, target, zone)
    is_time = target.column.type == "TIMESTAMP"
    return Unfit(str(value), OUT_OF_AGE if is_time else MISFITS[target.column.type])


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
    """Return epochs, whose unit follows from their size as in `parse_time`, as microseconds."""
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    given: NDArray[Any] = values.fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        sound = (given >= 0) & (given < _LIMIT)
        size = np.where(sound, given, 0)
        scaled = [_scaled(size, 1_000_000), _scaled(size, 1000), size]
        micros = np.select([size < 1e11, size < 1e14, size < 1e17], scaled, size // 1000)
        micros = micros.astype(np.int64)
    of_age = sound & (micros >= EARLIEST_US) & (micros <= LATEST_US)
    return pa.array(micros, mask=~of_age | np.asarray(values.is_null()))


def _scaled(size: NDArray[Any], factor: int) -> NDArray[Any]:
    """Multiply, and cut what the decimal digits of a number say beyond the unit."""
    if size.dtype.kind != "f":
        return size * factor
    nearest: NDArray[np.float64] = np.rint(size * factor)
    # A double below the one nearest to the whole number is written with smaller digits.
    return nearest - (size < nearest / factor)
