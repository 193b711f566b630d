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
    """One row: its cells, and from where to where on the x axis of the chart it lies.

    One that is `marked` is about the culprit: told before others.
    """

    cells: tuple[Cell, ...]
    begin: float | None
    end: float | None
    marked: bool = False


@dataclass(frozen=True, slots=True)
class DataTable:
    """Rows of marks whose tooltips say the same; `left_out` rows more are not in the page.

    `upright` is the column that the y axis of the chart shows, None where none is it.
    """

    columns: tuple[str, ...]
    rows: tuple[DataRow, ...]
    left_out: int
    upright: int | None = None


def data_tables(spec: Value) -> list[DataTable]:
    """Return a table for each kind of mark, that with the most rows first."""
    found: dict[tuple[str, ...], dict[tuple[Cell, ...], DataRow]] = {}
    upright: dict[tuple[str, ...], int | None] = {}
    for layer in marks(spec):
        tips = layer.get("encoding", {}).get("tooltip")
        if tips:
            columns = tuple(tip["title"] for tip in tips)
            rows = found.setdefault(columns, {})
            fields = [tip["field"] for tip in tips]
            y = layer["encoding"].get("y", {}).get("field")
            upright.setdefault(columns, fields.index(y) if y in fields else None)
            for row in _rows(layer, tips, spec.get("datasets", {})):
                rows.setdefault(row.cells, row)
    tables = [
        DataTable(
            columns,
            tuple(rows.values())[:_MOST_ROWS],
            max(len(rows) - _MOST_ROWS, 0),
            upright[columns],
        )
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
        cells = tuple(_cell(row.get(tip["field"]), tip) for tip in tips)
        yield DataRow(cells, begin, end, bool(row.get("marked")))


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
