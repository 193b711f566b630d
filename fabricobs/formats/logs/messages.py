"""Messages that share a line: where writers share a pipe, or a progress bar ends without a newline.

Each format's mark begins its own message; what stands before it is another. A line counts as parsed
only if all its messages are read.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabricobs.formats.logs.lines import LineReader
from fabricobs.formats.logs.prefixes import Labels, before_message, inner_prefix

BAR_MARK = "%|"
# Ray prints a line of many workers once, and behind it how many they were.
REPEATED_MARK = " across cluster]"
# `35%|###5   | 210/600 [10:02<18:11, 2.80s/it]`, what tqdm draws and ends without a newline.
_BAR = re.compile(r"\d%\|[^|]*\|[^\[|]{0,60}\[[^\]\[]*\]")


@dataclass(frozen=True, slots=True)
class Message:
    """A message, and whether it follows a progress bar: then one process wrote both."""

    text: str
    follows_bar: bool = False


def is_bar(text: str) -> bool:
    """Say whether a text is a progress bar and nothing else follows it."""
    if BAR_MARK not in text:
        return False
    found = _BAR.search(text)
    return found is not None and not text[found.end() :].strip()


def messages(line: str, readers: Sequence[LineReader], labels: Labels) -> list[Message]:
    """Return the messages of a line; `readers` are those whose messages have a mark."""
    if BAR_MARK not in line:
        return [Message(text) for text in _by_marks(line, readers, labels)]
    found: list[Message] = []
    for part in _by_bars(line):
        texts = list(_by_marks(part, readers, labels))
        found.append(Message(texts[0], follows_bar=bool(found)))
        found.extend(Message(text) for text in texts[1:])
    return found


def _by_bars(line: str) -> Iterator[str]:
    begin = 0
    for bar in _BAR.finditer(line):
        if line[bar.end() :].strip():
            yield line[begin : bar.end()]
            begin = bar.end()
    yield line[begin:]


def _by_marks(line: str, readers: Sequence[LineReader], labels: Labels) -> Iterator[str]:
    """Cut a line where marked messages begin, each prefix staying with the message behind it."""
    begin = 0
    for at in _starts(line, readers):
        before = line[begin:at]
        if before.strip() and not before_message(before, labels)[1]:
            at = begin + inner_prefix(before)
            yield line[begin:at]
            begin = at
    yield line[begin:]


def _starts(line: str, readers: Sequence[LineReader]) -> list[int]:
    starts, marks = set[int](), set[str]()
    for reader in readers:
        mark = reader.format.contains
        if mark in line and mark not in marks:
            marks.add(mark)
            starts.update(reader.starts(line))
    return sorted(starts)
