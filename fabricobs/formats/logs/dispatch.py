"""Each line of a text to the format that reads it, and the account of what became of it."""

import re
from collections.abc import Sequence

from fabricobs.formats.context import Context
from fabricobs.formats.logs.headings import Headings
from fabricobs.formats.logs.lines import LineReader, Outcome, TextReader
from fabricobs.formats.logs.messages import is_bar, messages
from fabricobs.formats.logs.prefixes import NOTHING, Labels, Told, merged, strip_prefix
from fabricobs.formats.records.within import RecordsWithin
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.values import TIME_PATTERN

_TIME = re.compile(TIME_PATTERN)


class Dispatcher:
    """The readers of one text."""

    def __init__(
        self, readers: Sequence[TextReader], context: Context, rows: Rows, tally: Tally
    ) -> None:
        self._readers = sorted(readers, key=_owns_no_lines)
        self._context = context
        self._rows = rows
        self._tally = tally
        self._by_line = [r for r in self._readers if isinstance(r, LineReader | RecordsWithin)]
        self._marked = [r for r in readers if isinstance(r, LineReader) and r.format.contains]
        self._pods = set[tuple[str, str]]()
        self._headings = Headings(by_rules=context.blocks)
        # Outputs of commands have rules of their own.
        self._captured = len(self._by_line) < len(readers)
        self._held: tuple[int, str] | None = None  # a line whose row goes on in the next
        self._about = ""  # what the last message that was dropped is about

    @property
    def labels(self) -> Labels:
        """Return the labels of lines that the text shows to be such."""
        return self._context.labels

    @property
    def told_above(self) -> bool:
        """Say whether a heading tells something of the lines below it."""
        return bool(self._headings.told)

    def read(self, line: str, number: int, around: Told = NOTHING) -> None:
        """Offer a line to every format until one takes it; blank lines need none.

        `around` is what a log service told with it. Of a line of several messages each is offered.
        """
        if not line.strip():
            self._tally.skip()
            for reader in self._readers:
                reader.offer("", number)
            return
        if not self._captured and self._headings.takes(line):
            self._tally.skip()
            return
        around = merged(self._headings.told, around) if self._headings.told else around
        outcomes: list[Outcome | str] = []
        unread, told, carried = "", around, around
        for message in messages(line, self._marked, self._context.labels):
            outcome, told = self._outcome(
                message.text, number, told if message.follows_bar else carried
            )
            if outcome is Outcome.NOT_MINE:
                unread = unread or message.text
                carried = _with_time(around, message.text)
            outcomes.append(outcome)
        self._count(outcomes, number, line, unread)

    def _count(
        self, outcomes: Sequence[Outcome | str], number: int, line: str, unread: str
    ) -> None:
        self._settle(joined=Outcome.JOINED in outcomes)
        if Outcome.HELD in outcomes:
            self._held = number, line
            return
        failure = next((outcome for outcome in outcomes if isinstance(outcome, str)), None)
        if failure is not None:
            self._tally.miss(number, failure, line)
        elif unread:
            self._tally.leave(number, unread)
        elif Outcome.PARSED in outcomes or Outcome.JOINED in outcomes:
            self._tally.read()
        else:
            self._tally.skip(about=self._about)

    def finish(self) -> None:
        """Account for a line whose row goes on in no other."""
        self._settle(joined=False)

    def _settle(self, *, joined: bool) -> None:
        """Account for the line that is held, now that the one below it was read."""
        if self._held is not None and joined:
            self._tally.read()
        elif self._held is not None:
            number, line = self._held
            self._tally.miss(number, "the rest of its row is not below it", line)
        self._held = None

    def _outcome(self, text: str, number: int, around: Told) -> tuple[Outcome | str, Told]:
        """Offer a message, then what stands below its prefixes; say what all around it told.

        Tables are cut by column and take whole lines only.
        """
        rests = list(strip_prefix(text, self._context.labels))
        told = merged(around, rests[-1][1]) if rests else around
        self._context.of_line.told = told
        self._about = ""
        outcome = self._first_taker(text, number, self._readers)
        for bare, _ in rests:
            # A line that a format knows and drops may be one that it keeps, behind a label.
            if outcome is not Outcome.NOT_MINE and outcome is not Outcome.IGNORED:
                break
            blank = not bare.strip()
            found = Outcome.IGNORED if blank else self._first_taker(bare, number, self._by_line)
            outcome = outcome if found is Outcome.NOT_MINE else found
        self._context.of_line.told = NOTHING
        if outcome is Outcome.NOT_MINE and is_bar(text):
            outcome, self._about = Outcome.IGNORED, "progress bars"
        if outcome is Outcome.PARSED and "pod" in told:
            self._add_pod(told)
        return outcome, told

    def _add_pod(self, told: Told) -> None:
        """Say on which node a pod runs, once."""
        pod, node = told["pod"], told.get("node") or told.get("host", "")
        if node and (pod, node) not in self._pods:
            self._pods.add((pod, node))
            base = self._context.base("hosts", "", snapshot=False)
            self._rows.add("hosts", {**base, "host": node, "fact": "pod", "value": pod})

    def _first_taker(self, line: str, number: int, readers: Sequence[TextReader]) -> Outcome | str:
        """Return what the first format that takes the line made of it, else the first failure."""
        failure, owned = "", False
        for reader in readers:
            if owned and _owns_no_lines(reader):
                break
            outcome = reader.offer(line, number)
            if isinstance(outcome, str):
                # A prompt right under a table is no row of it: another format may know the line.
                failure = failure or outcome
                owned = owned or not _owns_no_lines(reader)
            elif outcome is not Outcome.NOT_MINE:
                if outcome is Outcome.IGNORED and isinstance(reader, LineReader):
                    self._about = reader.ignored_about
                return outcome
        return failure or Outcome.NOT_MINE


def _owns_no_lines(reader: TextReader) -> bool:
    return not (isinstance(reader, LineReader) and reader.format.owns_lines)


def _with_time(told: Told, text: str) -> Told:
    """Return what is told, and the time that stands in a text of which nothing else is known."""
    found = _TIME.search(text)
    return told if found is None or "ts" in told else {**told, "ts": found[0]}
