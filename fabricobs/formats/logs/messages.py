"""Messages that share a line: where writers share a pipe, or a progress bar ends without a newline.

Each format's mark begins its own message; what stands before it is another. A line counts as parsed
only if all its messages are read.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabricobs.formats.logs.lines import LineReader
from fabricobs.formats.logs.prefixes import Labels, before_message, inner_prefix

_BAR_MARK = "%|"
# `35%|###5   | 210/600 [10:02<18:11, 2.80s/it]`, what tqdm draws and ends without a newline.
_BAR = re.compile(r"\d%\|[^|]*\|[^\[|]{0,60}\[[^\]\[]*\]")


@dataclass(frozen=True, slots=True)
class Message:
    """A message, and whether it follows a progress bar: then one process wrote both."""

    text: str
    follows_bar: bool = False


def is_bar(text: str) -> bool:
    """Say whether a text is a progress bar and nothing else follows it."""
    if _BAR_MARK not in text:
        return False
    found = _BAR.search(text)
    return found is not None and not text[found.end() :].strip()


def messages(line: str, readers: Sequence[LineReader], labels: Labels) -> list[Message]:
    """Return the messages of a line; `readers` are those whose messages have a mark."""
    cuts = dict.fromkeys(_after_bars(line), True) if _BAR_MARK in line else {}
    marks = set[str]()
    for reader in readers:
        mark = reader.format.mark
        if mark in line and mark not in marks:
            marks.add(mark)
            for start in reader.starts(line):
                cuts.setdefault(start, False)
    if not cuts:
        return [Message(line)]
    return list(_cut(line, sorted(cuts.items()), labels))


def _after_bars(line: str) -> Iterator[int]:
    return (found.end() for found in _BAR.finditer(line) if line[found.end() :].strip())


def _cut(line: str, cuts: Sequence[tuple[int, bool]], labels: Labels) -> Iterator[Message]:
    """Cut the line, each prefix staying with the message behind it."""
    begin, follows = 0, False
    for at, is_bars_end in cuts:
        before = line[begin:at]
        if not before.strip() or before_message(before, labels)[1]:
            continue
        if not is_bars_end:
            at = begin + inner_prefix(before)
        yield Message(line[begin:at], follows)
        begin, follows = at, is_bars_end
    yield Message(line[begin:], follows)
