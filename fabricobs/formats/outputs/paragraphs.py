"""The paragraphs reader: a header line, and below it lines of many shapes about one thing.

`Ethernet1 is up, ...` with twenty differing lines under it, or a table whose rows only a template
can cut. A header's fields hold for the whole paragraph. A line that tells only whose numbers follow
(a queue, a port) holds until the next such line; one that tells numbers too fills a row with them.
"""

import re
from collections.abc import Iterable

from fabricobs.formats.cells import CellBlock, CellRows
from fabricobs.formats.context import Context, column_names
from fabricobs.formats.definition import Block, Definition
from fabricobs.formats.logs.lines import Outcome
from fabricobs.formats.mapping import IDENTITY, Target
from fabricobs.formats.rows import Rows
from fabricobs.formats.templates import (
    Template,
    TemplateError,
    compile_template,
    first_match,
)
from fabricobs.formats.values import Value

# A name too long for its column stands alone; the rest of its row is indented on the next line.
_LONG_NAME = re.compile(r"[\w.()-]{12,}")


class ParagraphBlock:
    """A compiled block: headers, lines, and the columns their fields fill."""

    def __init__(self, block: Block, format_name: str) -> None:
        self.lines = tuple(compile_template(source) for source in block.line)
        headers = tuple(compile_template(source) for source in block.header)
        columns = dict(block.columns)
        known = column_names(block.table or "")
        for template in (*headers, *self.lines):
            for name, type_name in template.fields:
                if name in known:
                    columns.setdefault(name, f"{name}:{type_name}")
                elif name not in columns and name not in block.other:
                    raise TemplateError(
                        f"{template.source!r} captures {name!r}, which is no column of "
                        f"{block.table}; give it in columns or other, or drop the name"
                    )
        self.cells = CellBlock(block.model_copy(update={"columns": columns}), format_name)
        self.headers = headers


class ParagraphFormat:
    """A compiled `paragraphs` definition."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.blocks = tuple(ParagraphBlock(block, definition.name) for block in definition.block)
        # Without a header the whole file is one paragraph.
        self.always = next((block for block in self.blocks if not block.headers), None)


class ParagraphReader:
    """One `paragraphs` format reading one file."""

    def __init__(self, paragraph_format: ParagraphFormat, context: Context, rows: Rows) -> None:
        self._format = paragraph_format
        self._context = context
        self._cells = CellRows(context, rows)
        self._block = paragraph_format.always
        self._given: dict[str, Value] = {}
        self._held = ""

    def offer(self, line: str, number: int) -> Outcome | str:
        """Take headers, and below one the lines it knows."""
        text = line.strip().replace("\t", " ")
        if not text:
            return Outcome.NOT_MINE
        opened = self._open(text, number)
        held, self._held = self._held, ""
        if opened is not None:
            return opened
        if self._block is None:
            return Outcome.NOT_MINE
        indented = line[0] in " \t"
        joined = bool(held) and indented
        hit = first_match(self._block.lines, f"{held} {text}" if joined else text)
        if hit is not None:
            outcome = self._take(self._block, *hit, number, is_header=False)
            if outcome is Outcome.IGNORED:
                self._context.drop_line(hit[0], text)
            return Outcome.JOINED if joined and outcome is Outcome.PARSED else outcome
        if self._block.headers and indented:
            return f"{self._format.name}: no template fits this line"
        if self._block.headers and _LONG_NAME.fullmatch(text):
            self._held = text
            return Outcome.HELD
        return Outcome.NOT_MINE

    def opens(self, line: str) -> bool:
        """Say whether a paragraph begins here."""
        text = line.strip().replace("\t", " ")
        return any(first_match(block.headers, text) for block in self._format.blocks)

    def boundary(self, line: str, number: int) -> None:
        """Close the paragraph: a date, prompt or command stands here, which may open the next."""
        self._block, self._given, self._held = self._format.always, {}, ""
        self._open(line.strip(), number)

    def finish(self) -> None:
        """Hand over what is still open."""
        self._cells.flush()

    def _open(self, text: str, number: int) -> Outcome | str | None:
        for block in self._format.blocks:
            hit = first_match(block.headers, text)
            if hit is not None:
                # A header that names nothing goes on with what the command above it named.
                self._given = {} if hit[0].fields else self._given
                self._block = block
                return self._take(block, *hit, number, is_header=True)
        return None

    def _take(
        self,
        block: ParagraphBlock,
        template: Template,
        found: re.Match[str],
        number: int,
        *,
        is_header: bool,
    ) -> Outcome | str:
        names = [name for name, _ in template.fields]
        cells = list(zip(names, found.groups(), strict=True))
        try:
            identity = dict(_identity(block, cells))
            measured = [cell for cell in cells if cell[0] not in identity]
            if is_header or not measured:
                self._given.update(_converted(block, identity))
            if not cells or (not measured and not is_header):
                return Outcome.PARSED if cells else Outcome.IGNORED
            if not measured:
                return Outcome.IGNORED
            self._cells.add(block.cells, cells, number, self._given)
        except ValueError as error:
            return f"{self._format.name}: {error}"
        return Outcome.PARSED


def _identity(block: ParagraphBlock, cells: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """Yield the cells that say which row the others belong to."""
    for name, text in cells:
        target = block.cells.mapping.resolve(name)
        if isinstance(target, Target) and target.column.name in IDENTITY:
            yield name, text


def _converted(block: ParagraphBlock, identity: dict[str, str]) -> dict[str, Value]:
    converted: dict[str, Value] = {}
    for name, text in identity.items():
        target = block.cells.mapping.resolve(name)
        assert isinstance(target, Target)
        converted[target.column.name] = target.convert(text)
    return converted
