"""Objects as tables of HTML: what `_repr_html_` returns and a notebook shows."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import ClassVar, Protocol, TypeVar


class Row(Protocol):
    """Something that is a row of a table: a cell under each of `COLUMNS`."""

    COLUMNS: ClassVar[tuple[str, ...]]

    def cells(self) -> tuple[object, ...]:
        """Return the cells; None where nothing is known."""
        ...


_Row = TypeVar("_Row", bound=Row)


class Listing(tuple[_Row, ...]):
    """A tuple that a notebook shows as a table, a row for each item."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return table(self[0].COLUMNS, (each.cells() for each in self)) if self else "<p>none</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as a table of HTML, every cell escaped."""

    def line(cells: Iterable[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(text(cell))}</{tag}>' for cell in cells)}</tr>"

    head = line(columns, "th") if columns else ""
    return f"<table>{head}{''.join(line(row, 'td') for row in rows)}</table>"


def text(value: object) -> str:
    """Return a value as a person reads it: times to seconds, counts with commas, None as `-`."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def share_words(share: float) -> str:
    """Return a share of throughput as it is told everywhere: per cent, to a tenth of one."""
    return f"{share:.1%}"


def percent(share: float | None) -> str | None:
    """Return a share of 1 as per cent."""
    return None if share is None else share_words(share)
