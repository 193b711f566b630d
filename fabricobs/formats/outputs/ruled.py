"""The table reader: a header line, and rows cut by the dash ruler under it, or at blanks.

Cells hold blanks (`2000.00 MB/s`) and may be empty, so under a ruler only the ruler tells where
they end. Where the rule runs from edge to edge or there is none, a row has as many words as the
header; a name too long for its column stands alone on the line before. A comma may end a word, and
a header may begin with `#`, as do then the lines of units below it, unless they hold no digit; the
first cell may then be a kind and its number (`GPU 0`).

A line shaped like a header closes the table, as does a ruler of other columns: what stands below
belongs to a table that the format does not know.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fabricobs.formats.cells import CellBlock, CellRows
from fabricobs.formats.compiled.jit_cache import pays
from fabricobs.formats.context import Context
from fabricobs.formats.definition import Block, Definition
from fabricobs.formats.logs.lines import Outcome
from fabricobs.formats.outputs.layouts import Layout, cut_rows, layout_of
from fabricobs.formats.rows import Rows
from fabricobs.formats.templates import compile_template
from fabricobs.formats.values.times import SHORT_TIME_PATTERN, TIME_PATTERN

RULER = re.compile(r"^\s*-+(?:\s+-+)+\s*$")
_RULE = re.compile(r"^\s*(?:-+|=+)\s*$")
_PORT = re.compile(r"[A-Za-z-]+\d[\d/.]*$")
_DASHES = re.compile(r"-+")
# What a program such as `ts` writes before each line; the context keeps it.
_TIME_BEFORE = re.compile(rf"(?:{TIME_PATTERN}|{SHORT_TIME_PATTERN}):?[ \t](?=[ \t]*\S)")
_BLANKS = re.compile(r"\s{2,}")
_BETWEEN_WORDS = re.compile(r",?\s+")
_MARK = "#"
# Below this the line-by-line way is done before the compiled cutter is loaded, or else compiled.
_LEAST_BYTES = 512 << 10
_LEAST_TO_COMPILE = 4 << 20
_MOST_HEADERS = 1_000
# What stands in cells without a value, in letters.
_NO_VALUES = frozenset({"n/a", "na", "none", "null", "up", "down"})


@dataclass(frozen=True, slots=True)
class Ruled:
    """What a header and the ruler under it say: begin, end and name of each column, the blanks
    between them, and how their rows are cut at once, if they are."""

    columns: list[tuple[int, int, str]]
    gaps: list[tuple[int, int]]
    layout: Layout | None

    def fits(self, line: str) -> bool:
        """Say whether the columns of the line are parted where those of the ruler are."""
        return not any(line[begin:end].strip() for begin, end in self.gaps)


class TableBlock(CellBlock):
    """A compiled block: its titles too, and how its rows are cut."""

    def __init__(self, block: Block, format_name: str) -> None:
        super().__init__(block, format_name)
        self.titles = tuple(compile_template(source) for source in block.title)
        self.by_ruler = block.split == "ruler"
        self._places = {key: place for place, key in enumerate(block.columns)}
        self._ruled: dict[tuple[str, str], Ruled] = {}

    def order_of(self, names: Sequence[str]) -> list[int]:
        """Return the places of the columns in the order in which the definition names them."""
        last = len(self._places)
        return sorted(range(len(names)), key=lambda at: self._places.get(names[at], last))

    def ruled(self, header: str, ruler: str) -> Ruled | None:
        """Return what these two lines say; None if the second is no ruler."""
        found = self._ruled.get((header, ruler))
        if found is None and RULER.match(ruler):
            if len(self._ruled) >= _MOST_HEADERS:
                self._ruled.clear()
            columns, gaps = columns_of(header, ruler), _gaps(ruler)
            layout = layout_of(columns, gaps, self.mapping)
            found = self._ruled[header, ruler] = Ruled(columns, gaps, layout)
        return found


class TableFormat:
    """A compiled `table` definition."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.blocks = tuple(TableBlock(block, definition.name) for block in definition.block)
        self._first_words = _first_words(self.blocks)
        # Cells that the places of characters tell cannot do without what stands before them.
        self.by_words = not any(block.by_ruler for block in self.blocks)

    def block_of(self, line: str, titled: TableBlock | None) -> TableBlock | None:
        """Return the block whose header this line is; one with a title needs it above."""
        stripped = line.strip()
        if self._first_words and stripped.split(None, 1)[:1] not in self._first_words:
            return None
        for block in self.blocks:
            if block.titles and block is not titled:
                continue
            if any(header.pattern.match(stripped) for header in block.headers):
                return block
        return None

    def without_time(self, line: str) -> str:
        """Return a line without the time before it, where words alone tell the cells apart."""
        time = _TIME_BEFORE.match(line) if self.by_words else None
        return line[time.end() :] if time else line

    def titled(self, line: str) -> TableBlock | None:
        """Return the block whose title this line is."""
        stripped = line.strip()
        for block in self.blocks:
            if any(title.pattern.match(stripped) for title in block.titles):
                return block
        return None


class TableReader:
    """One `table` format reading one file."""

    def __init__(self, table_format: TableFormat, context: Context, rows: Rows) -> None:
        self._format = table_format
        self._has_titles = any(block.titles for block in table_format.blocks)
        self.cuts_rows = pays(
            "ruled_kernel", rows.expected_bytes, loading=_LEAST_BYTES, compiling=_LEAST_TO_COMPILE
        )
        self._context = context
        self._cells = CellRows(context, rows)
        self._titled: TableBlock | None = None
        self._block: TableBlock | None = None
        self._header = ""
        self._names: list[str] = []
        self._order: list[int] = []
        self._ruled: Ruled | None = None
        self._after_gap = False
        self._below_header = False  # no row stands between
        self._held = ""

    def offer(self, line: str, number: int) -> Outcome | str:
        """Take title, header, ruler and rows; anything else is not this format's."""
        line = self._format.without_time(line)
        if self._has_titles:
            titled = self._format.titled(line)
            if titled is not None:
                self._titled, self._block = titled, None
                return Outcome.IGNORED
        block = self._format.block_of(line, self._titled)
        if block is not None:
            self._block, self._header, self._ruled = block, line, None
            self._names = words_of(line.lstrip().removeprefix(_MARK))
            self._order = block.order_of(self._names)
            self._titled, self._after_gap, self._held = None, False, ""
            self._below_header = True
            return Outcome.IGNORED
        if self._block is None:
            return Outcome.NOT_MINE
        if not self._block.by_ruler:
            return self._offer_words(self._block, line, number)
        ruled = self._block.ruled(self._header, line)
        if ruled is not None and (self._ruled is None or ruled.gaps == self._ruled.gaps):
            self._ruled = ruled
            return Outcome.IGNORED
        if self._ruled is None or ruled is not None or self._is_end(line):
            self._block = None
            return Outcome.NOT_MINE
        if not line.strip():
            # Some tables part their groups by a blank line.
            self._after_gap = True
            return Outcome.NOT_MINE
        return self._row(self._block, self._ruled, line, number)

    def take_rows(self, data: bytes, at: int, number: int) -> tuple[int, int]:
        """Take the rows of the open table that stand at `at`, as far as they are beyond doubt.

        Returns how many lines they are and where they end.
        """
        ruled = self._ruled
        if not self.cuts_rows or self._block is None or ruled is None or ruled.layout is None:
            return 0, at
        cut = cut_rows(np.frombuffer(data, np.uint8), at, ruled.layout)
        if cut is None:
            return 0, at
        self._cells.add_cut(self._block, cut, number)
        return cut.lines, cut.end

    def opens(self, line: str) -> bool:
        """Say whether a table begins here."""
        line = self._format.without_time(line)
        if self._has_titles and self._format.titled(line) is not None:
            return True
        return self._format.block_of(line, self._titled) is not None

    def boundary(self, line: str, number: int) -> None:
        """Close the table: a date, prompt or command stands here."""
        self._block = self._titled = None

    def finish(self) -> None:
        """Hand over what is still open."""
        self._cells.flush()

    def _is_end(self, line: str) -> bool:
        """Say whether a line ends the table: a rule, or the header of another."""
        return bool(_RULE.match(line)) or _is_header(line.split(), self._header.split())

    def _row(self, block: TableBlock, ruled: Ruled, line: str, number: int) -> Outcome | str:
        if self._after_gap and not ruled.fits(line):
            self._block = None
            return Outcome.NOT_MINE
        cells = [(name, line[begin:end].strip()) for begin, end, name in ruled.columns]
        if " " in cells[0][1]:
            words = line.split()
            if len(words) != len(ruled.columns) or not _PORT.match(words[0]):
                self._block = None
                return Outcome.NOT_MINE
        if not cells[0][1]:
            # More of the row above: its last cell holds several lines.
            more = not any(text for _, text in cells[:-1])
            return Outcome.IGNORED if more else Outcome.NOT_MINE
        if not ruled.fits(line):
            # A tool that pads a long cell wrongly moves the others: as many words as columns tell.
            words = line.split()
            if len(words) != len(ruled.columns):
                return f"{self._format.name}: the cells do not stand under the ruler"
            cells = [(name, word) for (_, _, name), word in zip(ruled.columns, words, strict=True)]
        return self._add(block, cells, number)

    def _offer_words(self, block: TableBlock, line: str, number: int) -> Outcome | str:
        if _RULE.match(line):
            return Outcome.IGNORED
        names, words = self._names, words_of(line)
        if not words:
            return Outcome.NOT_MINE
        is_marked = self._header.lstrip().startswith(_MARK)
        if is_marked and (words[0].startswith(_MARK) or self._are_units(words)):
            return Outcome.IGNORED
        if is_marked and len(words) == len(names) + 1 and _is_numbered(words):
            words = [" ".join(words[:2]), *words[2:]]
        if not is_marked and _is_header(words, names):
            self._block = None
            return Outcome.NOT_MINE
        if len(words) == 1 and len(names) > 2 and line[0] not in " \t":
            self._held = words[0]
            return Outcome.HELD
        held, self._held = self._held, ""
        if held and line[0] in " \t":
            words = [held, *words]
        if len(words) != len(names):
            if _PORT.match(words[0]):
                return f"{self._format.name}: {len(words)} words under {len(names)} columns"
            return Outcome.NOT_MINE
        self._below_header = False
        outcome = self._add(block, [(names[at], words[at]) for at in self._order], number)
        return Outcome.JOINED if words[0] is held and outcome is Outcome.PARSED else outcome

    def _are_units(self, words: Sequence[str]) -> bool:
        """Say whether words under a header are the units of its columns: not a digit in them."""
        return self._below_header and not any(c.isdigit() for word in words for c in word)

    def _add(self, block: TableBlock, cells: list[tuple[str, str]], number: int) -> Outcome | str:
        if not block.mapping.table:
            return Outcome.IGNORED
        try:
            given = self._joined(block, cells)
            if given:
                cells = [(name, text) for name, text in cells if name not in block.join.parts]
            known = self._cells.add(block, cells, number, given)
        except ValueError as error:
            return f"{self._format.name}: {error}"
        return Outcome.PARSED if known else f"{self._format.name}: no column is known"

    def _joined(self, block: TableBlock, cells: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return the columns that several cells tell together, as a date and a time do."""
        if not block.join:
            return {}
        columns = block.join.columns(dict(cells))
        moment = columns.pop("ts", None)
        return columns | self._context.moment(moment) if moment else columns


def words_of(line: str) -> list[str]:
    """Return the words of a line, without the commas that end them."""
    stripped = line.strip()
    return _BETWEEN_WORDS.split(stripped) if stripped else []


def _is_numbered(words: Sequence[str]) -> bool:
    """Say whether a line begins with a kind and its number: GPU 0."""
    return words[0].isalpha() and words[1].isdecimal()


def _first_words(blocks: Sequence[TableBlock]) -> list[list[str]]:
    """Return the words headers begin with, each in a list; none if a field begins one."""
    words = [header.first_word for block in blocks for header in block.headers]
    return [[word] for word in words if word] if all(words) else []


def _is_header(words: Sequence[str], names: Sequence[str]) -> bool:
    """Say whether words are a header's: they begin as the open one's, or none is a value."""
    if not words:
        return False
    if len(words) > 1 and words[0].lower() == names[0].lower():
        return True
    named = [w for w in words if w[:1].isalpha() and w.lower() not in _NO_VALUES]
    return len(named) > 1 and not any(c.isdigit() for word in words for c in word)


def _gaps(ruler: str) -> list[tuple[int, int]]:
    """Return begin and end of what parts the columns."""
    runs = [match.span() for match in _DASHES.finditer(ruler)]
    return [(end, begin) for (_, end), (begin, _) in pairwise(runs)]


def columns_of(header: str, ruler: str) -> list[tuple[int, int, str]]:
    """Return begin, end and name of each column; the last one runs to the end of the line."""
    runs = [match.span() for match in _DASHES.finditer(ruler)]
    bounds = [0, *(begin for begin, _ in runs[1:])]
    ends: list[int] = [*bounds[1:], len(header) + 10_000]
    names = [header[begin:end].strip() for begin, end in zip(bounds, ends, strict=True)]
    spoken = _BLANKS.split(header.strip())
    if len(spoken) == len(names):
        names = spoken
    return list(zip(bounds, ends, names, strict=True))
