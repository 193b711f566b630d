"""The table reader: a header line, a dash ruler under it, rows cut by the ruler.

Cells hold blanks (`2000.00 MB/s`) and may be empty, so only the ruler tells where they end.
"""

import re

from fabricobs.formats.cells import CellBlock, CellRows
from fabricobs.formats.context import Context
from fabricobs.formats.definition import Definition
from fabricobs.formats.lines import Outcome
from fabricobs.formats.rows import Rows

_RULER = re.compile(r"^\s*-+(?:\s+-+)+\s*$")
_DASHES = re.compile(r"-+")
_BLANKS = re.compile(r"\s{2,}")


class TableFormat:
    """A compiled `table` definition."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.blocks = tuple(CellBlock(block, definition.name) for block in definition.block)

    def block_of(self, line: str) -> CellBlock | None:
        """Return the block whose header this line is."""
        stripped = line.strip()
        for block in self.blocks:
            if any(header.pattern.match(stripped) for header in block.headers):
                return block
        return None


class TableReader:
    """One `table` format reading one file."""

    def __init__(self, table_format: TableFormat, context: Context, rows: Rows) -> None:
        self._format = table_format
        self._cells = CellRows(context, rows)
        self._block: CellBlock | None = None
        self._header = ""
        self._columns: list[tuple[int, int, str]] = []

    def offer(self, line: str, number: int) -> Outcome | str:
        """Take header, ruler and rows; anything else is not this format's."""
        block = self._format.block_of(line)
        if block is not None:
            self._block, self._header, self._columns = block, line, []
            return Outcome.IGNORED
        if self._block is None:
            return Outcome.NOT_MINE
        if _RULER.match(line):
            self._columns = _cut(self._header, line)
            return Outcome.IGNORED
        if not self._columns or not line.strip(" -"):
            self._block = None
            return Outcome.NOT_MINE
        return self._row(line, number)

    def finish(self) -> None:
        """Hand over what is still open."""
        self._cells.flush()

    def _row(self, line: str, number: int) -> Outcome | str:
        block = self._block
        assert block is not None
        cells = [(name, line[begin:end].strip()) for begin, end, name in self._columns]
        if not cells[0][1] or " " in cells[0][1]:
            self._block = None
            return Outcome.NOT_MINE
        try:
            known = self._cells.add(block, cells, number, {})
        except ValueError as error:
            return f"{self._format.name}: {error}"
        return Outcome.PARSED if known else f"{self._format.name}: no column is known"


def _cut(header: str, ruler: str) -> list[tuple[int, int, str]]:
    """Return begin, end and name of each column; the last one runs to the end of the line."""
    runs = [match.span() for match in _DASHES.finditer(ruler)]
    bounds = [0, *(begin for begin, _ in runs[1:])]
    ends: list[int] = [*bounds[1:], len(header) + 10_000]
    names = [header[begin:end].strip() for begin, end in zip(bounds, ends, strict=True)]
    spoken = _BLANKS.split(header.strip())
    if len(spoken) == len(names):
        names = spoken
    return list(zip(bounds, ends, names, strict=True))
