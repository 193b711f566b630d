"""The configuration reader: lines whose indentation says what they belong to.

`interface Ethernet1` and the lines indented below it, as switches print their configuration. Rules
are those of `lines`, but what a line sets by `context` holds only for the lines indented below it.
Lines that no rule reads are known and not kept, up to the next date or prompt.
"""

from typing import Any

from fabricobs.formats.context import Context
from fabricobs.formats.logs.lines import LineFormat, LineReader, Outcome
from fabricobs.formats.rows import Rows

_TAB = 8


class ConfigurationReader(LineReader):
    """One `configuration` format reading one file."""

    def __init__(self, line_format: LineFormat, context: Context, rows: Rows) -> None:
        super().__init__(line_format, context, rows)
        self._is_open = False
        # The sections around a line: how far each is indented, and what was kept above it.
        self._sections: list[tuple[int, dict[str, Any]]] = []

    def offer(self, line: str, number: int) -> Outcome | str:
        """Read the line below the sections it belongs to."""
        indent = _indent(line)
        if indent is None:
            return Outcome.NOT_MINE
        self._leave(indent)
        above = dict(self.context.kept)
        outcome = super().offer(line, number)
        if self.context.kept != above:
            self._sections.append((indent, above))
        if outcome is Outcome.NOT_MINE and self._is_open:
            self.ignored_about = f"{self.format.name}: other settings"
            return Outcome.IGNORED
        self._is_open = self._is_open or outcome is not Outcome.NOT_MINE
        return outcome

    def opens(self, line: str) -> bool:
        """Say whether a section begins here."""
        if line[:1] in {"", " ", "\t"}:
            return False
        hit = self.format.match(line.strip(), {})
        return hit is not None and bool(hit[0].definition.context)

    def boundary(self, line: str, number: int) -> None:
        """End the configuration: a date, prompt or command stands here, which may open the next."""
        self._leave(0)
        self._is_open = False
        if line:
            self._is_open = self.format.match(line.strip(), {}) is not None

    def _leave(self, indent: int) -> None:
        """Drop what the sections kept that a line so far indented is not in."""
        while self._sections and self._sections[-1][0] >= indent:
            _, above = self._sections.pop()
            ended = dict.fromkeys(self.context.kept.keys() - above.keys())
            self.context.keep({**ended, **above})


def _indent(line: str) -> int | None:
    """Return how far a line is indented; None for a blank one."""
    text = line.expandtabs(_TAB).rstrip()
    return len(text) - len(text.lstrip()) if text else None
