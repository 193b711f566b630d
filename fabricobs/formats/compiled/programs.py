"""What the compiled matcher knows of the formats of a file: their rules as tables of numbers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# What becomes of a line that fits an entry: it gives rows or keeps fields, or is ignored. LEFT: the
# line is one for the reference.
ROW, IGNORED, LEFT = 0, 1, -1
# Kinds of fields: numbers read by the matcher, or (from 0 on) texts of a type.
WHOLE, HEX, NUMBER, TIME = -1, -2, -3, -4
# Columns of `entries`. Ranges are of rows of `groups`, `finds`, `sets`; EACH, REST are -1 without.
(
    EXPRESSION, OUTCOME, FORMAT, SHARED, CONDITION, PLACE, GROUPS, GROUPS_END, FINDS, FINDS_END,
    EACH, EACH_GROUPS, EACH_GROUPS_END, REST, SETS, SETS_END, NEEDS_ROWS, SLOTS,
) = range(18)  # fmt: skip
ENTRY_WIDTH = 18
# A line with one of the first marks is one for the reference.
LEFT_MARKS = 2
# Columns of `formats`: mark and anchor, -1 without; whether the word after the mark ends a prefix.
MARK, ANCHOR, BY_WORD = 0, 1, 2


class Programs(NamedTuple):
    """The rules of all formats of a file, flat; an entry is one template of a rule.

    Candidates of format `f` for a message that begins with byte `b` are list `f * 256 + b`.
    """

    entries: NDArray[np.int32]  # entries x ENTRY_WIDTH
    groups: NDArray[np.int32]  # (group, slot, kind)
    finds: NDArray[np.int32]  # (expression, first of its groups, one after the last)
    sets: NDArray[np.int32]  # (register, constant)
    conditions: NDArray[np.int32]  # (register, constant) of each condition, register -1 for none
    formats: NDArray[np.int32]  # (mark, anchor, by word)
    marks: NDArray[np.int32]  # (begin, length) in `texts`
    peels: NDArray[np.int32]  # expressions of prefixes, in order
    headings: NDArray[np.int32]  # expressions of lines that say what holds for those below
    asked: NDArray[np.uint8]  # types whose texts are asked about
    texts: NDArray[np.uint8]  # marks
    needs: NDArray[np.uint64]  # entries x NEEDS: what a message must hold, of `Compiler.needs`
    candidates: NDArray[np.int32]
    lists: NDArray[np.int32]
