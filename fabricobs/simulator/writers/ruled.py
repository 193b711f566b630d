"""The tables of SONiC's commands: a rule under each column, two blanks between."""

from collections.abc import Sequence
from functools import lru_cache

_PADDING = 2  # that a column is wider than its header, at least


def ruled_table(headers: Sequence[str], columns: Sequence[Sequence[str]], align: str = ">") -> str:
    """A table, one sequence of cells a column; `align` is `<` or `>`, for all or one a column.

    As `tabulate` prints it in the layout "simple", which SONiC uses.
    """
    longest = tuple(max(map(len, cells)) for cells in columns)
    head, row = _layout(tuple(headers), longest, align)
    lines = [row % cells for cells in zip(*columns, strict=True)]
    if align[-1] == "<":
        lines = [line.rstrip() for line in lines]
    return "\n".join([head, *lines, ""])


@lru_cache(maxsize=1024)
def _layout(headers: tuple[str, ...], longest: tuple[int, ...], align: str) -> tuple[str, str]:
    """Header and rule, and a row with a place for each cell, by each column's longest cell."""
    sides = align * len(headers) if len(align) == 1 else align
    widths = [
        max(len(header) + _PADDING, cell) for header, cell in zip(headers, longest, strict=True)
    ]
    places = (
        f"%{'-' if side == '<' else ''}{width}s" for side, width in zip(sides, widths, strict=True)
    )
    row = "  ".join(places)
    rule = "  ".join("-" * width for width in widths)
    return f"{(row % headers).rstrip()}\n{rule}", row


def grouped(counts: Sequence[int]) -> list[str]:
    """Counts with commas, as the commands print them."""
    return [f"{count:,}" for count in counts]
