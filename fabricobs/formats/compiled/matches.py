"""What the compiled matcher fills: arrays made once a file and written over block by block."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.limits import LIMITS
from fabricobs.formats.source import LONGEST_LINE

# Why the matcher stops: at the end, for room, for a text to be judged, for a line to be read now.
DONE, FULL, ASKS, WAITS = 0, 1, 2, 3
# The outcome of a line that is left but surely nobody's.
NOBODYS = 3
# What is known of a text that is asked about: prefixes, and texts that some types refuse.
NEW, ACCEPTED, REFUSED = 0, 1, 2
# Where in `progress` stands what. The byte and line the matcher goes on with, the end of the data;
# how many rows there are, and lines left to the reference; how many lines gave rows, fit no rule of
# their format, are nobody's, or are blank; the entry that ignored the last ignored line; how many
# texts the vocabulary has; the last prefix; the text asked about and, of a prefix, its length in
# its line, and where in it which time stands; whether lines that fit no rule, or are nobody's, are
# only counted; whether every format of the file is known here.
(
    AT, LINE, END, ROWS, LEFT_LINES, PARSED, MISSED, FOREIGN, BLANK_LINES, IGNORED_BY, KNOWN, LAST,
    ASKED, ASKED_END, STAMP, STAMP_BEGIN, STAMP_END, COUNTS_MISSED, COUNTS_FOREIGN, WHOLE_FILE,
) = range(20)  # fmt: skip
# No value: what a field holds that a line lacks.
ABSENT = -(1 << 63)
# Types of texts in the vocabulary; the others are numbers of the types of values.
PREFIX = 255

# Bytes of a line; a longer one is left.
LONGEST = 1 << 16
# Not a power of two, so that the fields of a row do not share one set of the processor's cache.
_ROWS = (1 << 17) + 72
_LEFT_LINES = 1 << 11
_TEXTS = 1 << 16
_ARENA = 8 * LONGEST_LINE
_STACK = 1 << 12


class Vocabulary(NamedTuple):
    """Texts by number: text `i` is `arena[begins[i] : begins[i + 1]]`."""

    arena: NDArray[np.uint8]
    begins: NDArray[np.int64]
    places: NDArray[np.int32]  # hash table of numbers, -1 where empty
    types: NDArray[np.uint8]
    standing: NDArray[np.uint8]  # of texts that are asked about
    allowed: NDArray[np.uint8]  # of prefixes: texts x conditions, flat


class Found(NamedTuple):
    """The rows found, and the lines left to the reference."""

    entries: NDArray[np.int32]
    lines: NDArray[np.int64]
    prefixes: NDArray[np.int32]
    stamps: NDArray[np.int64]  # time told by the prefix, in us of its own zone
    fields: NDArray[np.int64]  # slots x rows: whole numbers, bits of decimal ones, texts' numbers
    left: NDArray[np.int64]  # line, first byte, byte after the newline, outcome
    ignored: NDArray[np.int64]  # lines by the entry that ignores them


class Room(NamedTuple):
    """What the matcher works with and nobody reads."""

    groups: NDArray[np.int64]
    stack: NDArray[np.int64]  # choices x 3
    text: NDArray[np.uint8]  # a prefix without its time
    registers: NDArray[np.int32]  # kept fields that conditions ask for: numbers of constants
    ends: NDArray[np.int64]  # of the prefixes of a line
    words: NDArray[np.uint64]  # bits of the words of a message


def new_vocabulary(conditions: int) -> Vocabulary:
    """Return an empty vocabulary."""
    return Vocabulary(
        np.empty(_ARENA, np.uint8),
        np.zeros(_TEXTS + 1, np.int64),
        np.full(2 * _TEXTS, -1, np.int32),
        np.zeros(_TEXTS, np.uint8),
        np.zeros(_TEXTS, np.uint8),
        np.zeros(_TEXTS * conditions, np.uint8),
    )


def new_found(slots: int, entries: int) -> Found:
    """Return room for rows of up to `slots` fields."""
    return Found(
        np.empty(_ROWS, np.int32),
        np.empty(_ROWS, np.int64),
        np.empty(_ROWS, np.int32),
        np.empty(_ROWS, np.int64),
        np.empty((max(slots, 1), _ROWS), np.int64),
        np.empty((_LEFT_LINES, 4), np.int64),
        np.zeros(max(entries, 1), np.int64),
    )


def new_room(groups: int, registers: int) -> Room:
    """Return what one matcher works with."""
    return Room(
        np.zeros(2 * groups + 2, np.int64),
        np.zeros((_STACK, 3), np.int64),
        np.zeros(LIMITS.offered_chars + 64, np.uint8),
        np.full(registers + 1, -1, np.int32),
        np.zeros(4, np.int64),
        np.zeros(2, np.uint64),
    )


def new_progress() -> NDArray[np.int64]:
    """Return the state of a matcher that has seen nothing."""
    progress = np.zeros(20, np.int64)
    progress[LAST] = -1
    return progress
