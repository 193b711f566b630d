"""Events of a Chrome JSON trace, streamed: traces of gigabytes are usual, and broken ones occur.

The array of events is cut at its brackets with numpy, and only events that hold a wanted text are
decoded. What one event breaks (a lost bracket, a bad escape, a file that ends early) costs that
event, not the rest. An event counts as a line.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.decompression import SourceError
from fabricobs.formats.documents.jsontext import loads
from fabricobs.formats.limits import LIMITS
from fabricobs.formats.whole import WholeFile

Positions = NDArray[np.intp]

OTHERS = "other events of a trace"  # what is not kept
_PIECE = 4 << 20
_LONGEST_HEAD = 32 << 20
_LONGEST_TAIL = 1 << 20
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[|\A\s*\[')
_NEXT_EVENT = re.compile(rb'\{\s*"(?:ph|name|cat|pid|ts)"\s*:')
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')

_QUOTE, _BACKSLASH, _NEWLINE = b'"'[0], b"\\"[0], b"\n"[0]
_DEPTH = np.zeros(256, np.int8)
_DEPTH[[b"{"[0], b"["[0]]] = 1
_DEPTH[[b"}"[0], b"]"[0]]] = -1


class ChromeTrace:
    """A trace being read: `head` and `tail` are the text around the events, once read that far.

    `wanted` are expressions each of which should begin with plain text: those are found fast.
    """

    def __init__(self, file: WholeFile, wanted: Sequence[re.Pattern[bytes]]) -> None:
        self.head = b""
        self.tail = b""
        self._file = file
        self._wanted = wanted
        self._pieces: Iterator[bytes] = file.pieces(_PIECE)
        self._number = 0

    def events(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield number and content of each wanted event; the caller counts those.

        All others are counted here: as ignored, or as unread with the reason.
        """
        self._to_first_event()
        buffer = b""
        problem: SourceError | None = None
        while True:
            try:
                piece = next(self._pieces, None)
            except SourceError as error:
                piece, problem = None, error
            buffer += piece or b""
            buffer, closed = yield from self._whole_events(buffer, last=piece is None)
            if closed:
                self._to_end(buffer)
            if closed or piece is None:
                break
        if problem is not None:
            raise problem

    def _whole_events(
        self, buffer: bytes, *, last: bool
    ) -> Generator[tuple[int, dict[str, Any]], None, tuple[bytes, bool]]:
        """Yield what a buffer holds; return what it does not hold to the end, and if all is."""
        while True:
            cut = _cut(buffer)
            end = yield from self._decode(buffer, cut)
            buffer = buffer[end:]
            if end < cut.end:
                continue
            if cut.closed:
                return buffer, True
            if cut.astray:
                continue
            if last and buffer.strip(b" \r\n\t,"):
                buffer = self._give_up(buffer, "the file ends within an event")
            elif len(buffer) > LIMITS.event_bytes:
                buffer = self._give_up(buffer, "an event does not end")
            else:
                return buffer, False

    def document(self) -> dict[str, Any]:
        """Return what stands around the events, as far as it can be read."""
        found: dict[str, Any] = {}
        before = self.head.rstrip().rstrip(b",")
        after = self.tail.lstrip().lstrip(b",")
        for text in (before + b"}", b"{" + after, b"{" + after + b"}"):
            try:
                part = loads(text.decode("utf-8", "replace"))
            except ValueError:
                continue
            found |= part if isinstance(part, dict) else {}
        return found

    def _to_first_event(self) -> None:
        buffer = b""
        for piece in self._pieces:
            buffer += piece
            found = _ARRAY.search(buffer)
            if found is not None:
                self.head = buffer[: found.start()]
                self._pieces = chain((buffer[found.end() :],), self._pieces)
                return
            if len(buffer) > _LONGEST_HEAD:
                break
        self._file.miss(1, "no list of events", "")
        self._pieces = iter(())

    def _to_end(self, rest: bytes) -> None:
        for piece in self._pieces:
            if len(rest) < _LONGEST_TAIL:
                rest += piece
        self.tail = rest[:_LONGEST_TAIL]

    def _decode(self, data: bytes, cut: "_Cut") -> Generator[tuple[int, dict[str, Any]], None, int]:
        """Yield the wanted events of a cut; return how far it was right."""
        first = self._number + 1
        hits = [
            hit.start()
            for expression in self._wanted
            for hit in expression.finditer(data, 0, cut.end)
        ]
        owners = np.searchsorted(cut.starts, np.array(hits, np.intp), "right") - 1
        wanted = np.unique(owners[owners >= 0]).tolist()
        for done, position in enumerate(wanted):
            begin = int(cut.starts[position])
            text = data[begin : cut.ends[position] + 1]
            event = _event(text)
            if event is not None:
                yield first + position, event
                continue
            self._number = first + position
            self._miss("event is no JSON object", text)
            following = _NEXT_EVENT.search(text, 1)
            if following is not None:
                # A bracket or quote is missing, and the cut took the events after it for its part.
                self._file.tally.skip(position - done, OTHERS)
                return begin + following.start()
        self._number = first + len(cut.starts) - 1
        self._file.tally.skip(len(cut.starts) - len(wanted), OTHERS)
        return cut.end

    def _miss(self, reason: str, text: bytes) -> None:
        shown = text[:1000].decode("utf-8", "replace").lstrip(", \r\n")
        self._file.miss(self._number, f"{reason}", shown)

    def _give_up(self, buffer: bytes, reason: str) -> bytes:
        """Count an event that cannot be cut, and go on at what looks like the next one."""
        self._number += 1
        self._miss(reason, buffer)
        found = _NEXT_EVENT.search(buffer, buffer.find(b"{") + 1)
        return buffer[found.start() :] if found is not None else b""


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where the events of a buffer start and end; what follows `end` is not cut yet."""

    starts: Positions
    ends: Positions
    end: int
    closed: bool = False  # the list of events ended
    astray: bool = False  # a bracket too many: cut again from `end`


def _cut(data: bytes) -> _Cut:
    text = np.frombuffer(data, np.uint8)
    brackets = np.flatnonzero(_DEPTH[text])
    brackets = brackets[~_in_string(text, brackets)]
    change = _DEPTH[text[brackets]]
    depth = np.cumsum(change, dtype=np.int64)
    below = np.flatnonzero(depth < 0)
    closed = astray = False
    stop = None
    if len(below):
        stop = int(brackets[below[0]])
        closed = data[stop : stop + 1] == b"]"
        astray = not closed
        last = int(below[0])
        brackets, change, depth = brackets[:last], change[:last], depth[:last]
    ends = brackets[(depth == 0) & (change == -1)]
    starts = brackets[(depth == 1) & (change == 1)][: len(ends)]
    end = int(ends[-1]) + 1 if len(ends) else 0
    return _Cut(starts, ends, end if stop is None else stop + 1, closed, astray)


def _in_string(text: NDArray[np.uint8], places: Positions) -> NDArray[np.bool_]:
    """Say which places are inside quotes; no string goes beyond its line, so that errors heal."""
    quotes = np.flatnonzero(text == _QUOTE)
    escaped = np.flatnonzero((text[quotes - 1] == _BACKSLASH) & (quotes > 0))
    if len(escaped):
        real = np.ones(len(quotes), np.bool_)
        for position in escaped.tolist():
            at = int(quotes[position]) - 1
            first = at
            while first >= 0 and text[first] == _BACKSLASH:
                first -= 1
            real[position] = (at - first) % 2 == 0
        quotes = quotes[real]
    newlines = np.flatnonzero(text == _NEWLINE)
    before_line = np.concatenate(([0], np.searchsorted(quotes, newlines)))
    in_line = np.searchsorted(quotes, places) - before_line[np.searchsorted(newlines, places)]
    inside: NDArray[np.bool_] = in_line % 2 == 1
    return inside


def _event(data: bytes) -> dict[str, Any] | None:
    text = data.decode("utf-8", "replace")
    try:
        event = loads(text)
    except ValueError:
        try:
            event = loads(_BAD_ESCAPE.sub(r"\\\\", text))
        except ValueError:
            return None
    return event if isinstance(event, dict) else None
