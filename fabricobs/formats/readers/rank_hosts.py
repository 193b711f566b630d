"""Lists of hosts that tell the ranks of each: hostfiles of launchers, and ranges of ranks.

`gpu-a07 slots=8` gives the host the next eight ranks: MPI and DeepSpeed number ranks host by host
in the order of the file. A range without the word rank is one of ranks if the ranges count up
from 0.
"""

import re
from dataclasses import dataclass

from fabricobs.formats.whole import WholeFile

_HOST = r"(?P<host>[A-Za-z][\w.-]*)"
_SLOTS = re.compile(rf"{_HOST}\s+slots\s*=\s*(?P<slots>\d{{1,6}})(?:\s.*)?")
_RANGE = r"\[?(?P<first>\d{1,9})-(?P<last>\d{1,9})\]?"
_SAID = r"(?i:ranks?)\s*[=:]?\s*"
_TOLD = (
    re.compile(rf"{_SAID}{_RANGE}\s*(?:[:=,]|->|on)?\s*{_HOST}"),
    re.compile(rf"{_HOST}[\s:,]+(?:\w+=[^\s,]+[\s,]+)*{_SAID}{_RANGE}(?:[\s,]+\w+=[^\s,]+)*"),
)
_BARE = (
    re.compile(rf"{_RANGE}[\s:,]+{_HOST}"),
    re.compile(rf"{_HOST}[\s:,]+{_RANGE}"),
)
_MOST_RANKS = 1 << 20


@dataclass(frozen=True, slots=True)
class _Part:
    """A host and its ranks."""

    line: int
    text: str
    host: str
    first: int
    last: int


def read_rank_hosts(file: WholeFile) -> None:
    """Read one list; a line that names no host and its ranks is counted as unread."""
    bare: list[_Part] = []
    slots = 0
    for number, line in file.lines():
        text = line.partition("#")[0].strip()
        if not text:
            file.tally.skip()
            continue
        hostfile = _SLOTS.fullmatch(text)
        if hostfile is not None:
            first, slots = slots, slots + int(hostfile["slots"])
            if first < slots <= _MOST_RANKS:
                _add(file, _Part(number, line, hostfile["host"], first, slots - 1))
            else:
                file.miss(number, "no rank", line)
            continue
        told, is_said = _ranks_of(number, line, text)
        if told is None or not told.first <= told.last < _MOST_RANKS:
            file.miss(number, "no host and ranks", line)
        elif is_said:
            _add(file, told)
        else:
            bare.append(told)
    are_ranks = _count_up(bare)
    for part in bare:
        if are_ranks:
            _add(file, part)
        else:
            file.miss(part.line, "ranges that do not count up from 0", part.text)


def _ranks_of(number: int, line: str, text: str) -> tuple[_Part | None, bool]:
    """Return the host and ranks of a line, and whether it says that they are ranks."""
    for is_said, expressions in ((True, _TOLD), (False, _BARE)):
        for expression in expressions:
            found = expression.fullmatch(text)
            if found is not None:
                first = int(found["first"])
                return _Part(number, line, found["host"], first, int(found["last"])), is_said
    return None, False


def _count_up(parts: list[_Part]) -> bool:
    """Say whether each range begins where the one before it ends, the first one at 0."""
    following = 0
    for part in parts:
        if part.first != following:
            return False
        following = part.last + 1
    return True


def _add(file: WholeFile, part: _Part) -> None:
    told = {"host": part.host, "first_rank": part.first, "last_rank": part.last}
    file.add("host_map", told, part.line)
    file.tally.read()
