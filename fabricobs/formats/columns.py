"""Arrow columns out of numpy arrays, without a copy where there need be none."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# A column of one text or of nulls is a slice of one made before, up to this length.
_SHARED = 1 << 17


def numbers(values: NDArray[Any]) -> pa.Array:
    """Return whole or decimal numbers as a column."""
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def nulls(count: int, kind: pa.DataType) -> pa.Array:
    """Return a column of nulls."""
    return _shared_nulls(kind)[:count] if count <= _SHARED else pa.nulls(count, kind)


def constant(value: Any, count: int) -> pa.Array:
    """Return a column of one value, which is not None."""
    if not isinstance(value, str):
        return pa.repeat(pa.scalar(value), count)
    places = _zeros()[:count] if count <= _SHARED else np.zeros(count, np.int32)
    return _dictionary(numbers(places), [value])


def coded(codes: NDArray[np.int32], values: list[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Return the column whose row `i` is `values[codes[i]]`, null where that is None.

    Without `kind` its type follows from the values.
    """
    given = [value for value in values if value is not None]
    if len(values) == len(given) == 1:
        return constant(given[0], len(codes))
    if not any(isinstance(value, str) for value in given):
        return pa.array(values, kind).take(numbers(codes))
    if len(given) == len(values):
        return _dictionary(numbers(codes), given)
    present = np.array([value is not None for value in values])
    places = np.cumsum(present).astype(np.int32) - 1
    bits = np.packbits(present[codes], bitorder="little")
    buffers = [pa.py_buffer(bits), pa.py_buffer(places[codes])]
    return _dictionary(pa.Array.from_buffers(pa.int32(), len(codes), buffers), given)


def _dictionary(places: pa.Array, values: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(places, pa.array(values, pa.string()), safe=False)


@cache
def _zeros() -> NDArray[np.int32]:
    return np.zeros(_SHARED, np.int32)


@cache
def _shared_nulls(kind: pa.DataType) -> pa.Array:
    return pa.nulls(_SHARED, kind)
