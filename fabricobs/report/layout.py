"""Text for a terminal: wrapped lines, labels, lists and aligned columns."""

import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from fabricobs.printing import escaped

# Lines of a narrower terminal break; longer lines are hard to read.
_NARROWEST, _USUAL, _WIDEST = 60, 100, 200
MOST_NAMED = 5
_LABEL_WIDTH = 12
_GAP = "  "
# A cell that is no longer is a number with its unit, a name or a time of day: it stays whole.
_MOST_OF_A_NUMBER = 16
# Where a column of a line begins: behind two blanks.
_COLUMN = re.compile(r"(?<=\S) {2,}(?=\S)")
# What blanks part in SQL; those in quotes part nothing.
_SQL_WORD = re.compile(r"""--.*|(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\s'"])+""")
# Our own sentences stand in TOML over several lines.
_WHITE = re.compile(r"[\t\n\r]")


def width() -> int:
    """Return the width of lines: that of the terminal or $COLUMNS; 100 where there is neither."""
    return known_width() or _USUAL


def known_width() -> int | None:
    """Return the width of the terminal, or $COLUMNS; None where there is neither."""
    columns = shutil.get_terminal_size((0, 0)).columns
    return min(max(columns, _NARROWEST), _WIDEST) if columns else None


def fitted(text: str) -> str:
    """Return lines as wide as the terminal; a program reads each as one, however long.

    What does not fit goes on below the last column that begins in the left half.
    """
    most = known_width()
    if most is None:
        return text
    return "\n".join(_folded(line, most) for line in text.split("\n"))


def fitted_sql(sql: str, indent: int) -> str:
    """Return SQL, indented, in lines as wide as the terminal, still the same SQL."""
    most = known_width()
    lines = sql.strip().split("\n")
    if most is not None:
        lines = [_folded_sql(line, most - indent) for line in lines]
    return textwrap.indent("\n".join(lines), " " * indent)


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


def aligned(rows: Sequence[tuple[str, ...]], indent: int = 0) -> str:
    """Return a head and rows as columns, the first to the left, the others to the right.

    Long texts break where the terminal is narrower; where that is not enough, each row becomes a
    paragraph that names its columns.
    """
    rows = [tuple(map(escaped, row)) for row in rows]
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    most = known_width()
    room = None if most is None else most - indent - len(_GAP) * (len(columns) - 1)
    left = {0}
    if room is not None and sum(widths) > room:
        least = [_narrowest(column) for column in columns]
        if sum(least) > room:
            return textwrap.indent(_paragraphs(rows, indent), " " * indent)
        while sum(widths) > room:
            widest = max(range(len(widths)), key=lambda i: widths[i] - least[i])
            widths[widest] -= 1
            left.add(widest)
    lines = [line for row in rows for line in _lines(row, widths, left)]
    return textwrap.indent("\n".join(lines), " " * indent)


def _narrowest(column: Sequence[str]) -> int:
    """Return how narrow a column may be: numbers with their units stay whole."""
    longest = max(map(len, column))
    if longest <= _MOST_OF_A_NUMBER:
        return longest
    return max(len(word) for cell in column for word in cell.split() or [""])


def _lines(row: tuple[str, ...], widths: Sequence[int], left: set[int]) -> Iterator[str]:
    """Yield the lines of a row, whose cells may take several."""
    cells = [
        [cell] if len(cell) <= width else _broken(cell, width)
        for cell, width in zip(row, widths, strict=True)
    ]
    for parts in zip_longest(*cells, fillvalue=""):
        placed = enumerate(zip(parts, widths, strict=True))
        yield _GAP.join(p.ljust(w) if i in left else p.rjust(w) for i, (p, w) in placed).rstrip()


def _broken(cell: str, width: int) -> list[str]:
    lead = " " * (len(cell) - len(cell.lstrip()))
    return textwrap.wrap(cell, width, subsequent_indent=lead, break_long_words=False)


def _paragraphs(rows: Sequence[tuple[str, ...]], indent: int) -> str:
    head, *others = rows
    lines = [head[0]] if head[0].strip() else []
    for first, *cells in others:
        named = [
            f"{name.strip()} {c.strip()}" for name, c in zip(head[1:], cells, strict=True) if c
        ]
        lines.append(_folded(f"{first}: {', '.join(named)}", width() - indent))
    return "\n".join(lines)


def _folded(line: str, most: int) -> str:
    """Return a line in as many as it takes; they go on below its last column in the left half."""
    if len(line) <= most:
        return line
    ends = [m.end() for m in _COLUMN.finditer(line)]
    lead = len(line) - len(line.lstrip())
    if ends and ends[-1] <= most // 2:
        hang = ends[-1]
    else:
        line, hang = _COLUMN.sub(_GAP, line), min(lead + 4, most // 2)
    return textwrap.fill(
        line, most, subsequent_indent=" " * hang, break_on_hyphens=False, replace_whitespace=False
    )


def _folded_sql(line: str, most: int) -> str:
    words = _SQL_WORD.findall(line)
    if len(line) <= most or "".join(words).replace(" ", "") != line.replace(" ", ""):
        return line
    lead = " " * (len(line) - len(line.lstrip()))
    comment = words.pop() if words[-1].startswith("--") else ""
    lines = [lead + words[0]] if words else []
    for word in words[1:]:
        if len(lines[-1]) + len(word) < most:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{lead}  {word}")
    if comment:
        lines += textwrap.wrap(
            lead + comment, most, subsequent_indent=f"{lead}--     ", replace_whitespace=False
        )
    return "\n".join(lines)


def few(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - MOST_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    return ", ".join(names[:MOST_NAMED]) + rest
