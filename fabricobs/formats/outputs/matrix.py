"""The matrix reader: names across the top, names down the side, a row for every cell."""

import re

from fabricobs.formats.cells import CellBlock
from fabricobs.formats.context import Context
from fabricobs.formats.definition import Definition
from fabricobs.formats.logs.lines import Outcome
from fabricobs.formats.mapping import Target
from fabricobs.formats.rows import Rows
from fabricobs.formats.templates import TemplateError

# RowKeys across the top hold single blanks (`CPU Affinity`); cells hold none.
_BETWEEN_NAMES = re.compile(r"\t\s*|\s{2,}")


class MatrixFormat:
    """A compiled `matrix` definition: `row`, `column` and `cell` are the keys of its block."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.block = CellBlock(definition.block[0], definition.name)
        targets = [self.block.mapping.resolve(key) for key in ("row", "column", "cell")]
        known = [target for target in targets if isinstance(target, Target)]
        if len(known) != len(targets):
            raise TemplateError("a matrix needs the columns row, column and cell")
        self.row, self.column, self.cell = known


class MatrixReader:
    """One `matrix` format reading one file."""

    def __init__(self, matrix: MatrixFormat, context: Context, rows: Rows) -> None:
        self._format = matrix
        self._context = context
        self._rows = rows
        self._names: list[str] = []

    def offer(self, line: str, number: int) -> Outcome | str:
        """Take the header, which is indented, and the rows below it until a blank line."""
        text = line.strip()
        block = self._format.block
        if line[:1].isspace() and any(h.pattern.match(text) for h in block.headers):
            self._names = _BETWEEN_NAMES.split(text)
            return Outcome.IGNORED
        cells = text.split()
        if not self._names or len(cells) < 2:
            self._names = []
            return Outcome.NOT_MINE
        if len(cells) - 1 > len(self._names):
            return f"{self._format.name}: {len(self._names)} columns"
        base = self._context.base(block.mapping.table, self._format.name, snapshot=True)
        for name, cell in zip(self._names, cells[1:], strict=False):
            row = {**base, "line": number}
            row[self._format.row.column.name] = self._format.row.convert(cells[0])
            row[self._format.column.column.name] = self._format.column.convert(name)
            row[self._format.cell.column.name] = self._format.cell.convert(cell)
            self._rows.add(block.mapping.table, row)
        return Outcome.PARSED
