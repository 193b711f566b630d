"""The tables of SONiC's commands: a rule under each column, two blanks between."""

from collections.abc import Sequence

_PADDING = 2  # that a column is wider than its header, at least


def ruled_table(headers: Sequence[str], columns: Sequence[Sequence[str]], align: str = ">") -> str:
    """A table, one sequence of cells a column; `align` is `<` or `>`, for all or one a column.

    As `tabulate` prints it in the layout "simple", which SONiC uses.
    """
    sides = align * len(headers) if len(align) == 1 else align
    widths = [
        max(len(header) + _PADDING, *map(len, cells))
        for header, cells in zip(headers, columns, strict=True)
    ]
    places = (
        f"%{'-' if side == '<' else ''}{width}s" for side, width in zip(sides, widths, strict=True)
    )
    row = "  ".join(places)
    rule = ["-" * width for width in widths]
    lines = [row % cells for cells in (tuple(headers), tuple(rule), *zip(*columns, strict=True))]
    if sides[-1] == "<":
        lines = [line.rstrip() for line in lines]
    return "\n".join(lines) + "\n"


def grouped(counts: Sequence[int]) -> list[str]:
    """Counts with commas, as the commands print them."""
    return [f"{count:,}" for count in counts]
