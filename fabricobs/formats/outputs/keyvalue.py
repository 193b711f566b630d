"""The key-value reader: a dump of `name: value` lines, or a file that is one value."""

import re
from typing import Any

from fabricobs.formats.cells import CellBlock, CellRows
from fabricobs.formats.context import Context
from fabricobs.formats.definition import Definition
from fabricobs.formats.logs.lines import Outcome
from fabricobs.formats.outputs.dumps import LineCache
from fabricobs.formats.rows import Rows
from fabricobs.formats.templates import Template, first_match

# The fields of a pair that the columns of a block read, not their types.
_PAIR = ("key", "value")


class KeyValueFormat:
    """A compiled `keyvalue` definition: one block."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.block = CellBlock(definition.block[0], definition.name)
        # Hosts print the same lines: what one file told is known in the next.
        self.known = LineCache(self.block.mapping, overwrite=bool(self.block.headers))


class KeyValueReader:
    """One `keyvalue` format reading one file.

    With header templates a dump begins at a header line, whose fields belong to its rows, or at a
    key that `opens` names, as where a filter left no header. Without header templates every line
    that fits the pair template counts, and fields of the pair say whose it is. The key of a pair
    may stand in the path of the file.
    """

    def __init__(self, key_value: KeyValueFormat, context: Context, rows: Rows) -> None:
        self._format = key_value
        self._block = key_value.block
        self._context = context
        self._cells = CellRows(context, rows, overwrite=bool(self._block.headers))
        self._key = context.from_path.get("key", "")
        self._told: dict[str, Any] = {}
        self._given: dict[str, Any] = {}
        self._active = not self._block.headers
        self._opened_by_key = False
        # Of the dump that a key opened: two keys may fill one column, so columns tell no end.
        self._keys: set[str] = set()
        self._by_line_until = 0

    def take_rows(self, data: bytes, at: int, number: int) -> tuple[int, int]:
        """Take the lines at `at` that differ from earlier ones in the numbers at their ends alone.

        Returns how many lines they are and where they end.
        """
        if not self._active or self._opened_by_key or number < self._by_line_until:
            return 0, at
        taken = self._format.known.run_at(data, at)
        if taken is None:
            return 0, at
        if not self._cells.add_run(self._block, taken, number, self._given):
            self._by_line_until = number + taken.run.lines
            return 0, at
        return taken.run.lines, taken.end

    def offer(self, line: str, number: int) -> Outcome | str:
        """Take headers and pairs."""
        try:
            if self._header(line):
                return Outcome.IGNORED
        except ValueError as error:
            return f"{self._format.name}: {error}"
        if not self._block.pairs or not (self._active or self._block.openers):
            return Outcome.NOT_MINE
        pair, found = self._pair_in(line.strip())
        if not self._active:
            if not self._opens(pair, found):
                return Outcome.NOT_MINE
            self._begin(by_key=True)
        skipped = first_match(self._block.skip, line.strip()) if found is None else None
        if skipped is not None:
            self._context.drop_line(skipped[0], line)
            return Outcome.IGNORED
        if found is None:
            self._active = not self._block.headers
            return Outcome.NOT_MINE
        if not self._block.mapping.table:
            return Outcome.IGNORED
        try:
            fields = pair.read(found, as_text=_PAIR)
            key, value = str(fields.pop("key", self._key)), str(fields.pop("value", ""))
            if self._opened_by_key:
                if key in self._keys:
                    self._begin(by_key=True)
                self._keys.add(key)
            known = self._cells.add(self._block, [(key, value)], number, self._given | fields)
        except ValueError as error:
            return f"{self._format.name}: {error}"
        if known and not self._key:
            self._format.known.learn(line, key, value, fields)
        return Outcome.PARSED if known else f"{self._format.name}: {key} has no whole number"

    def _pair_in(self, line: str) -> tuple[Template, re.Match[str] | None]:
        """Return the first template of a pair that fits a line, and what it captured."""
        for pair in self._block.pairs:
            found = pair.pattern.match(line)
            if found is not None:
                return pair, found
        return self._block.pairs[-1], None

    def _opens(self, pair: Template, found: re.Match[str] | None) -> bool:
        """Say whether a pair is one that opens a dump above which no header stands."""
        if found is None:
            return False
        key = str(pair.read(found, as_text=_PAIR).get("key", self._key))
        return first_match(self._block.openers, key) is not None

    def _begin(self, *, by_key: bool) -> None:
        """Begin a dump; one without a header ends where a key comes again."""
        self._cells.flush()
        self._active, self._opened_by_key = True, by_key
        self._keys = set()

    def boundary(self, line: str, number: int) -> None:
        """Close the dump: a date, prompt or command stands here, which may open the next."""
        if not self._header(line):
            self._active = not self._block.headers

    def finish(self) -> None:
        """Hand over what is still open."""
        self._cells.flush()

    def _header(self, line: str) -> bool:
        for header in self._block.headers:
            found = header.pattern.match(line.strip())
            if found is None:
                continue
            self._begin(by_key=False)
            if header.fields:
                fields = header.read(found)
                # With `join` headers nest: an inner one adds to what the outer ones told. One that
                # tells nothing begins anew.
                self._told = {**self._told, **fields} if self._block.join else fields
                self._given = {**self._told, **self._block.join.columns(self._told)}
            elif self._block.join:
                self._told, self._given = {}, {}
            return True
        return False
