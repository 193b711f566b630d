"""Text for a terminal: wrapped lines, labels, lists and aligned columns."""

import re
import shutil
import textwrap
from collections.abc import Sequence

from fabricobs.printing import escaped

# Lines of a narrower terminal break; longer lines are hard to read.
_NARROWEST, _USUAL, _WIDEST = 60, 100, 200
MOST_NAMED = 5
_LABEL_WIDTH = 12
# Our own sentences stand in TOML over several lines.
_WHITE = re.compile(r"[\t\n\r]")


def width() -> int:
    """Return the width of lines: that of the terminal or $COLUMNS; 100 where there is neither."""
    return min(max(shutil.get_terminal_size((_USUAL, 0)).columns, _NARROWEST), _WIDEST)


def wrapped(text: str, lead: str = "", hang: int | None = None) -> str:
    """Return the text in lines of the terminal's width, the first led by `lead`."""
    return textwrap.fill(
        escaped(in_line(text)),
        width(),
        initial_indent=lead,
        subsequent_indent=" " * (len(lead) if hang is None else hang),
        break_on_hyphens=False,
    )


def in_line(text: str) -> str:
    """Return a text of several lines as one."""
    return _WHITE.sub(" ", text)


def labelled(label: str, text: str) -> str:
    """Return a text behind its label, in lines of the terminal's width."""
    return wrapped(text, f"  {label:<{_LABEL_WIDTH}}")


def listed(title: str, items: Sequence[str]) -> list[str]:
    """Return a title and a line or more for each item; nothing where there is none."""
    return [f"  {title}", *(wrapped(item, "    - ") for item in items)] if items else []


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows as columns, the first to the left, the others to the right."""
    rows = [tuple(map(escaped, row)) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def few(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - MOST_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    return ", ".join(names[:MOST_NAMED]) + rest
