"""What the compiled matcher fills: arrays made once a file and written over block by block."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.source import LONGEST_LINE

# Why the matcher stops.
DONE, FULL, ASKS = 0, 1, 2
# What is known of a prefix: the matcher asks about a new one.
NEW, ACCEPTED, REFUSED = 0, 1, 2
# Where in `progress` stands what: the byte and line the matcher goes on with, the end of the data,
# how many rows, ignored lines and lines left to the expressions there are, how many texts the
# vocabulary has, the prefix of the last row, and the prefix asked about.
AT, LINE, END, ROWS, SKIPPED, LEFT_LINES, KNOWN, LAST, ASKED = range(9)

_ROWS = 1 << 17
_LEFT_LINES = 1 << 14
_TEXTS = 1 << 16
_ARENA = 8 * LONGEST_LINE


class Vocabulary(NamedTuple):
    """Texts by number: text `i` is `arena[begins[i] : begins[i + 1]]`."""

    arena: NDArray[np.uint8]
    begins: NDArray[np.int64]
    places: NDArray[np.int32]  # hash table of numbers, -1 where empty
    standing: NDArray[np.uint8]  # of the texts that are prefixes


class Found(NamedTuple):
    """The rows found, and the lines left to the expressions."""

    templates: NDArray[np.int32]
    lines: NDArray[np.int64]
    prefixes: NDArray[np.int32]  # number of the text before the message, -1 for none
    fields: NDArray[np.int64]  # slots x rows: whole numbers, bits of decimal ones, texts' numbers
    left: NDArray[np.int64]  # line, first byte, byte after the newline


def new_vocabulary() -> Vocabulary:
    """Return an empty vocabulary."""
    return Vocabulary(
        np.empty(_ARENA, np.uint8),
        np.zeros(_TEXTS + 1, np.int64),
        np.full(2 * _TEXTS, -1, np.int32),
        np.zeros(_TEXTS, np.uint8),
    )


def new_found(slots: int) -> Found:
    """Return room for rows of up to `slots` fields."""
    return Found(
        np.empty(_ROWS, np.int32),
        np.empty(_ROWS, np.int64),
        np.empty(_ROWS, np.int32),
        np.empty((max(slots, 1), _ROWS), np.int64),
        np.empty((_LEFT_LINES, 3), np.int64),
    )


def new_progress() -> NDArray[np.int64]:
    """Return the state of a matcher that has seen nothing."""
    progress = np.zeros(9, np.int64)
    progress[LAST] = -1
    return progress
