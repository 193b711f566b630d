"""The rows behind a chart as tables: for a screen reader, the keyboard, a CSV file.

They are what the tooltips of its marks say, so a specification of Vega-Lite has all of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fabricobs.report.charts.positions import position
from fabricobs.report.charts.svg import Value, marks
from fabricobs.report.wording import number, percent

_MOST_ROWS = 800


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell says, and what it is sorted by where that is something else."""

    text: str
    sort: float | None = None


@dataclass(frozen=True, slots=True)
class DataRow:
    """One row: its cells, and from where to where on the x axis of the chart it lies."""

    cells: tuple[Cell, ...]
    begin: float | None
    end: float | None


@dataclass(frozen=True, slots=True)
class DataTable:
    """Rows of marks whose tooltips say the same; `left_out` rows more are not in the page."""

    columns: tuple[str, ...]
    rows: tuple[DataRow, ...]
    left_out: int


def data_tables(spec: Value) -> list[DataTable]:
    """Return a table for each kind of mark, that with the most rows first."""
    found: dict[tuple[str, ...], dict[tuple[Cell, ...], DataRow]] = {}
    for layer in marks(spec):
        tips = layer.get("encoding", {}).get("tooltip")
        if tips:
            rows = found.setdefault(tuple(tip["title"] for tip in tips), {})
            for row in _rows(layer, tips, spec.get("datasets", {})):
                rows.setdefault(row.cells, row)
    tables = [
        DataTable(columns, tuple(rows.values())[:_MOST_ROWS], max(len(rows) - _MOST_ROWS, 0))
        for columns, rows in found.items()
        if rows
    ]
    return sorted(tables, key=lambda table: -len(table.rows))


def _rows(layer: Value, tips: Sequence[Value], datasets: Value) -> Iterator[DataRow]:
    data = layer.get("data", {})
    encoding = layer["encoding"]
    x, x2, y = (encoding.get(channel, {}).get("field") for channel in ("x", "x2", "y"))
    for row in data.get("values", datasets.get(data.get("name"), ())):
        if y is not None and row.get(y, "") is None:
            continue  # where a line is interrupted
        begin = position(row.get(x))
        end = position(row.get(x2)) if x2 else begin
        yield DataRow(tuple(_cell(row.get(tip["field"]), tip) for tip in tips), begin, end)


def _cell(value: Any, tip: Value) -> Cell:
    if value is None:
        return Cell("-")
    if tip["type"] == "temporal":
        return Cell(str(value)[:19].replace("T", " "), position(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell(str(value))
    if "format" in tip:
        return Cell(percent(value), value)
    return Cell(f"{value:,}" if isinstance(value, int) else number(value), value)
