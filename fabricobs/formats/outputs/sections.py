"""The sections reader: tables in one text, each CSV between `START_NAME` and `END_NAME`."""

from typing import Any

from fabricobs.formats.cells import CellBlock, CellRows
from fabricobs.formats.context import Context
from fabricobs.formats.definition import Definition
from fabricobs.formats.logs.lines import Outcome
from fabricobs.formats.mapping import Target
from fabricobs.formats.records.csv_records import split_line
from fabricobs.formats.rows import Rows

_BEGIN = "START_"
_END = "END_"


class SectionsFormat:
    """A compiled `sections` definition: a block's header templates are the names of sections."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.blocks = tuple(
            (CellBlock(block, definition.name), block.sticky) for block in definition.block
        )

    def block_of(self, section: str) -> tuple[CellBlock, tuple[str, ...]] | None:
        """Return the first block that names the section, and its sticky columns."""
        for block, sticky in self.blocks:
            if any(header.pattern.match(section) for header in block.headers):
                return block, sticky
        return None


class SectionsReader:
    """One `sections` format reading one file. A section no block names is not kept."""

    def __init__(self, sections: SectionsFormat, context: Context, rows: Rows) -> None:
        self._format = sections
        self._context = context
        self._cells = CellRows(context, rows)
        self._section: str | None = None
        self._block: CellBlock | None = None
        self._sticky: tuple[str, ...] = ()
        self._header: list[str] = []

    def offer(self, line: str, number: int) -> Outcome | str:
        """Take the marks of sections, their headers and their records."""
        text = line.strip()
        if text.startswith(_BEGIN):
            self._begin(text[len(_BEGIN) :])
            return Outcome.IGNORED
        if self._section is None:
            return Outcome.IGNORED if text.startswith("#") else Outcome.NOT_MINE
        if text == _END + self._section:
            self._section = None
            return Outcome.IGNORED
        if not text:
            return Outcome.IGNORED
        if self._block is None:
            self._context.drop(f"section {self._section}")
            return Outcome.IGNORED
        if not self._header:
            self._header = [name.strip() for name in _fields(text)]
            return Outcome.IGNORED
        return self._record(self._block, _fields(text), number)

    def finish(self) -> None:
        """Hand over what is still open."""
        self._cells.flush()

    def _begin(self, section: str) -> None:
        found = self._format.block_of(section)
        self._section, self._header = section, []
        self._block, self._sticky = found if found is not None else (None, ())

    def _record(self, block: CellBlock, values: list[str], number: int) -> Outcome | str:
        if len(values) != len(self._header):
            return f"{self._format.name}: {len(self._header)} columns"
        cells = list(zip(self._header, values, strict=True))
        try:
            held = self._held(block, cells)
            if held:
                self._context.keep(held)
                return Outcome.PARSED
            self._cells.add(block, cells, number, {})
        except ValueError as error:
            return f"{self._format.name}: {error}"
        # Records of one section may share all that identifies a row: each is a row of its own.
        self._cells.flush()
        return Outcome.PARSED

    def _held(self, block: CellBlock, cells: list[tuple[str, str]]) -> dict[str, Any]:
        """Return the columns of a record that holds for the whole file."""
        held: dict[str, Any] = {}
        for key, value in cells:
            target = block.mapping.resolve(key) if key in self._sticky else None
            if isinstance(target, Target):
                held[target.column.name] = target.convert(value)
        return held


def _fields(line: str) -> list[str]:
    return [field.strip() for field in split_line(line, ",")]
