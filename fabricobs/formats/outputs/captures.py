"""The readers of a capture: the outputs of several commands, with dates and prompts between them.

Outputs do not interleave: what is open is closed by a date or prompt, and by a line that another
format takes.
"""

import re
from collections.abc import Sequence

from fabricobs.formats.context import Context
from fabricobs.formats.identity.vocabulary import likeness
from fabricobs.formats.logs.lines import Outcome, TextReader
from fabricobs.formats.outputs.keyvalue import KeyValueReader
from fabricobs.formats.outputs.ruled import TableReader

_RULE = re.compile(r"(-{8,}|={8,}|_{8,})\s*")
_HOST = re.compile(r"[A-Za-z0-9][\w.-]*\s*")


class Banner:
    """Tells the host that `clush -b` and `dshbak` print between two rules above its output."""

    def __init__(self) -> None:
        self._rule: str | None = None  # the line before, if it is one
        self._name: str | None = None
        self._of_hosts: str | None = None  # a rule between which a host stood

    def is_name(self, line: str) -> bool:
        """Say whether a line is the name below a rule; below one of a host any word is one."""
        above, self._rule = self._rule, line if _RULE.fullmatch(line) else None
        if self._rule is not None:
            return False
        self._name = None
        if above and _HOST.fullmatch(line):
            name = line.strip()
            self._name = name if above == self._of_hosts or likeness(name) >= 2 else None
        return self._name is not None

    @property
    def host(self) -> str | None:
        """Return the name, once the rule below it is there."""
        if self._rule is None or self._name is None:
            return None
        self._of_hosts = self._rule
        return self._name


class CaptureReader:
    """Several readers of one capture as one; what stands between the outputs is taken first."""

    def __init__(
        self, separators: Sequence[TextReader], readers: Sequence[TextReader], context: Context
    ) -> None:
        self._banner = Banner()
        self._context = context
        self._companions = separators
        self._readers = readers
        self._last: TextReader | None = None
        self.takes_rows = any(
            isinstance(r, KeyValueReader) or (isinstance(r, TableReader) and r.cuts_rows)
            for r in readers
        )

    def offer(self, line: str, number: int) -> Outcome | str:
        """Offer a line to the separators, then to every reader until one takes it."""
        if not line:
            for reader in self._readers:
                reader.offer("", number)
            return Outcome.NOT_MINE
        if self._banner.is_name(line):
            return Outcome.IGNORED
        if self._banner.host is not None:
            for reader in self._readers:
                _close(reader, line, number)
            self._context.keep({"device": self._banner.host})
            return Outcome.IGNORED
        for companion in self._companions:
            outcome = companion.offer(line, number)
            if outcome is Outcome.PARSED:
                for reader in self._readers:
                    _close(reader, line, number)
            if outcome is Outcome.PARSED or outcome is Outcome.IGNORED:
                return outcome
        return self._first_taker(line, number)

    def take_rows(self, data: bytes, at: int, number: int) -> tuple[int, int]:
        """Take rows of the table or dump that is open at `at`; nothing else looks like them.

        Returns how many lines they are and where they end.
        """
        if isinstance(self._last, TableReader | KeyValueReader):
            return self._last.take_rows(data, at, number)
        return 0, at

    def finish(self) -> None:
        """Hand over what is still open."""
        for reader in self._readers:
            finish = getattr(reader, "finish", None)
            if finish is not None:
                finish()

    def _turn(self, reader: TextReader, line: str) -> int:
        opens = getattr(reader, "opens", None)
        if opens is not None and opens(line):
            return 0
        return 1 if reader is self._last else 2

    def _first_taker(self, line: str, number: int) -> Outcome | str:
        """Offer to the reader that knows a beginning, then to the last taker, then to the rest."""
        failure = ""
        turns = self._readers
        if len(turns) > 1:
            turns = sorted(turns, key=lambda reader: self._turn(reader, line))
        for reader in turns:
            outcome = reader.offer(line, number)
            if isinstance(outcome, str):
                # What is damaged for one format may be sound for another, unless it is surely its.
                failure = failure or outcome
                if self._turn(reader, line) == 0:
                    break
            elif outcome is not Outcome.NOT_MINE:
                if self._last is not None and self._last is not reader:
                    _close(self._last, "", number)
                self._last = reader
                return outcome
        return failure or Outcome.NOT_MINE


def _close(reader: TextReader, line: str, number: int) -> None:
    """Close what a reader has open; the line, a prompt with a command, may open the next."""
    close = getattr(reader, "boundary", None)
    if close is not None:
        close(line, number)
