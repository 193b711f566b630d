"""Columns built from layers: of several values of a cell the last counts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fabricobs.formats.columns import coded, constant, numbers

Flags = NDArray[np.bool_]


class Layers:
    """The columns of some rows; each layer covers what stands below it where it says something."""

    def __init__(self, count: int, constants: Mapping[str, Any]) -> None:
        self.count = count
        self.columns: dict[str, pa.Array] = {
            name: constant(value, count) for name, value in constants.items() if value is not None
        }

    def put(self, name: str, column: pa.Array, said: Flags | None = None) -> None:
        """Put a column above what is there; `said` tells where it says something, None all over."""
        below = self.columns.get(name)
        if said is not None and not said.all():
            if not said.any():
                return
            if below is not None:
                column = pc.if_else(pa.array(said), *_alike(column, below))
        self.columns[name] = column

    def put_coded(
        self, name: str, codes: NDArray[np.int32], values: Sequence[Any], said: Flags | None = None
    ) -> None:
        """Put a column whose row `i` is `values[codes[i]]`."""
        if said is not None and not said.all():
            codes = np.where(said, codes, len(values)).astype(np.int32)
            values = [*values, None]
        if any(value is not None for value in values):
            self.put(name, coded(codes, list(values)), said)
        elif name in self.columns:
            self.put(name, pa.nulls(self.count, _plain(self.columns[name].type)), said)

    def put_texts(
        self, name: str, codes: NDArray[np.int32], texts: pa.StringArray, said: Flags
    ) -> None:
        """Put a column of texts, of which some may be null."""
        missing = ~said | texts.is_null().to_numpy(zero_copy_only=False)[codes]
        places = pa.array(codes, mask=missing)
        filled = texts.fill_null("") if texts.null_count else texts
        self.put(name, pa.DictionaryArray.from_arrays(places, filled), said)

    def put_numbers(self, name: str, values: NDArray[Any], said: Flags) -> None:
        """Put numbers; where nothing is said they mean nothing."""
        column = numbers(values) if said.all() else pa.array(values, mask=~said)
        self.put(name, column, said)

    def table(self) -> pa.Table:
        """Return the columns."""
        return pa.table(self.columns)


def _alike(first: pa.Array, second: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return two columns in one type."""
    first, second = _undictionaried(first), _undictionaried(second)
    if first.type != second.type and not pa.types.is_null(second.type):
        second = second.cast(first.type)
    return first, second


def _undictionaried(column: pa.Array) -> pa.Array:
    return column.cast(_plain(column.type))


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def compact(given: NDArray[Any]) -> tuple[list[int], NDArray[np.int32]]:
    """Return the distinct numbers in order, and for each given one its place among them."""
    counts = np.bincount(given)
    used = np.flatnonzero(counts)
    if len(used) == 1:
        return used.tolist(), np.zeros(len(given), np.int32)
    places = np.empty(len(counts), np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    return used.tolist(), places[given]
