"""Rows as Arrow columns; a value that its column cannot hold becomes null and is noted.

Nothing is checked value by value unless a column as a whole cannot be converted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fabricobs.formats.columns import nulls
from fabricobs.formats.values import Unfit
from fabricobs.store.arrow import coded_schema
from fabricobs.store.tables import TABLES

# What Python's datetime can hold: reading a time outside fails.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US, _LAST_US = (
    (moment.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
    for moment in (datetime.min, datetime.max)
)
_MOST_TOLD = 5  # columns whose cells did not fit
_REFUSED = (pa.ArrowException, OverflowError, ValueError, TypeError)
_MAP = pa.map_(pa.string(), pa.int64())


@dataclass(slots=True)
class UnfitCells:
    """The cells of one column of one file that did not fit: how many, and the first of them."""

    first: str
    count: int = 1

    def __str__(self) -> str:
        more = f", as in {self.count - 1:,} more cells of it" if self.count > 1 else ""
        return f"{self.first}: null{more}"


class UnfitByFile:
    """The cells that did not fit their columns and are null, by file and column."""

    def __init__(self) -> None:
        self._by_file: dict[str | None, dict[str, UnfitCells]] = {}

    def add(self, file_id: str | None, line: int | None, column: str, value: Unfit) -> None:
        """Note a cell; the first of a column is told in full."""
        columns = self._by_file.setdefault(file_id, {})
        known = columns.get(column)
        if known is not None:
            known.count += 1
            return
        where = "" if line is None else f"line {line:,}: "
        columns[column] = UnfitCells(f"{where}{column} {value}")

    def of_file(self, file_id: str) -> str | None:
        """Return which cells of a file did not fit, column by column; None if all did."""
        told = [str(cells) for cells in self._by_file.get(file_id, {}).values()]
        more = len(told) - _MOST_TOLD
        if more > 0:
            told[_MOST_TOLD:] = [f"cells of {more:,} more columns are null too"]
        return "; ".join(told) or None


def to_arrow(table: str, given: Mapping[str, Any], unfit: UnfitByFile) -> pa.Table:
    """Return columns, given as sequences of values or as Arrow's, in the schema of a table."""
    length = len(next(iter(given.values())))
    schema = coded_schema(table)
    columns: dict[str, pa.Array] = {}
    for field in schema:
        values = given.get(field.name)
        if values is None:
            columns[field.name] = nulls(length, field.type)
            continue
        try:
            columns[field.name] = _converted(values, field.type)
        except _REFUSED:
            plain = values.to_pylist() if isinstance(values, pa.ChunkedArray) else values
            columns[field.name] = _fitting(table, field, plain, given, unfit)
            if field.name == "ts" and "ts_source" in given:
                given = {**given, "ts_source": _sources(given["ts_source"], columns["ts"])}
    return pa.Table.from_arrays(list(columns.values()), schema=schema)


def _converted(values: Any, wanted: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Return a column; raises one of _REFUSED if it cannot hold a value."""
    column = _as_type(values, wanted) if isinstance(values, pa.ChunkedArray) else None
    if column is None:
        column = pa.array(values, wanted)
    if pa.types.is_timestamp(wanted):
        span = pc.min_max(column.cast(pa.int64())).as_py()
        if span["min"] is not None and not _FIRST_US <= span["min"] <= span["max"] <= _LAST_US:
            raise OverflowError("a time that no calendar has")
    return column


def _as_type(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if values.type == wanted:
        return values
    if pa.types.is_dictionary(wanted) and not pa.types.is_null(values.type):
        return values.cast(pa.string()).dictionary_encode()
    return values.cast(wanted)


def _fitting(
    table: str,
    field: pa.Field,
    values: Sequence[Any],
    given: Mapping[str, Any],
    unfit: UnfitByFile,
) -> pa.Array:
    """Return a column value by value; what does not fit is null, and noted for its file."""
    kept: list[Any] = []
    column = TABLES[table].column(field.name)
    counts = column is not None and column.is_counter
    for row, value in enumerate(values):
        fitting, wrong = _fit(value, field.type, counts=counts)
        kept.append(fitting)
        for each in wrong:
            unfit.add(_cell(given, "file_id", row), _cell(given, "line", row), field.name, each)
    return pa.array(kept, field.type)


def _cell(given: Mapping[str, Any], name: str, row: int) -> Any:
    values = given.get(name)
    if values is None:
        return None
    value = values[row]
    return value.as_py() if isinstance(value, pa.Scalar) else value


def _fit(value: Any, wanted: pa.DataType, *, counts: bool) -> tuple[Any, list[Unfit]]:
    """Return what a column, perhaps of a counter, can hold of a value, and what it cannot."""
    if isinstance(value, Unfit):
        return (
            (value.as_counter, []) if counts and value.as_counter is not None else (None, [value])
        )
    if isinstance(value, dict):
        kept: dict[str, int] = {}
        unfit: list[Unfit] = []
        for key, each in value.items():
            whole, wrong = _fit(each, _MAP.item_type, counts=True)
            name, _ = _fit(key, pa.string(), counts=False)
            if whole is not None:
                kept[name] = whole
            unfit += (Unfit(f"{name} {one.text}", one.reason) for one in wrong)
        return kept, unfit
    try:
        if isinstance(value, str):
            # Half of a surrogate pair, as JSON may hold, is no character.
            value = value.encode("utf-8", "replace").decode()
        _converted([value], wanted)
    except _REFUSED:
        return None, [unfit_of(value, wanted)]
    return value, []


def unfit_of(value: Any, wanted: pa.DataType) -> Unfit:
    """Return what stands for a value that a column of some type cannot hold."""
    text = f"of {value.bit_length():,} bits" if _is_huge(value) else str(value)
    if pa.types.is_timestamp(wanted):
        return Unfit(text, "is no time between the years 1 and 9999")
    if pa.types.is_int64(wanted):
        return Unfit(text, "does not fit 64 bits" if _is_huge(value, 63) else "is no whole number")
    return Unfit(text, "is no number" if pa.types.is_floating(wanted) else "is no text")


def _is_huge(value: Any, bits: int = 1024) -> bool:
    return isinstance(value, int) and value.bit_length() > bits


def _sources(sources: Sequence[Any], times: pa.Array) -> list[Any]:
    """Return where times are from; a time that was left out is from nowhere."""
    told = sources.to_pylist() if isinstance(sources, pa.ChunkedArray) else sources
    return [
        "none" if missing else source
        for source, missing in zip(told, times.is_null().to_pylist(), strict=True)
    ]
