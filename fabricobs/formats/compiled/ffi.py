"""Pieces of a block: where its lines and cells stand, and the compiled functions that read them.

A piece is packed as offset << 21 | length: lines are shorter than 2 MiB. What is not surely what is
wanted the compiled functions leave to the readers in Python.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.compiled.jit_cache import entry, words_of

Bytes = NDArray[np.uint8]
Wide = NDArray[np.int64]
Flags = NDArray[np.uint8]

LENGTH_BITS = 21
LENGTHS = (1 << LENGTH_BITS) - 1
ABSENT = -1
# What became of a line of CSV.
SLOW, FITS, BLANK = 0, 1, 2
# What became of a cell.
MISSING, READ, LEFT = 0, 1, 2
# The shape of a line of JSON that has none of those known.
SHAPELESS = -1
# Slots of a shape that are none: a value nobody wants, and the end of the line.
PASSED, END = -1, -2

# Blocks of shorter lines are looked through twice.
_USUAL_LINE = 20


@dataclass(slots=True)
class NumberedLines:
    """A block whose line `i` is `data[bounds[i] : bounds[i + 1] - 1]`, and texts added to it."""

    data: Bytes
    bounds: Wide
    _added: bytearray = field(default_factory=bytearray)

    def line(self, number: int) -> bytes:
        """Return a line without its newline."""
        return self.data[self.bounds[number] : self.bounds[number + 1] - 1].tobytes()

    def append(self, text: bytes) -> int:
        """Add a text that does not stand in the block; returns it packed, -1 for an empty one."""
        if not text:
            return -1
        at = len(self.data) + len(self._added)
        self._added += text
        return (at << LENGTH_BITS) | len(text)

    def text(self) -> Bytes:
        """Return the block and what was added."""
        if not self._added:
            return self.data
        return np.concatenate([self.data, np.frombuffer(self._added, np.uint8)])


def numbered(data: bytes) -> NumberedLines:
    """Find the lines of a block; the last one may lack its newline."""
    text = np.frombuffer(data if data.endswith(b"\n") else data + b"\n", np.uint8)
    bounds = np.empty(len(text) // _USUAL_LINE + 2, np.int64)
    lines = line_bounds(text, bounds)
    if lines >= len(bounds):
        bounds = np.empty(lines + 1, np.int64)
        line_bounds(text, bounds)
    return NumberedLines(text, bounds[: lines + 1])


def line_bounds(data: Bytes, bounds: Wide) -> int:
    """Fill in where each line begins, and one more; returns how many newlines there are.

    Newlines for which `bounds` has no room are counted alone.
    """
    return _call("line_bounds", data, bounds)


def intern(data: Bytes, pieces: Wide, codes: NDArray[np.int32], slots: Wide, seen: Wide) -> int:
    """Number the packed pieces; returns how many distinct ones there are.

    `slots` is a hash table of a power of two places, all -1, more than there are pieces; `seen`
    gets the first piece of each number.
    """
    return _call("intern", data, pieces, codes, slots, seen)


def is_plain(data: Bytes, delimiter: int) -> bool:
    """Say that no byte is a quote, or a control character that parts neither cells nor lines."""
    return _call("is_plain", data, delimiter) != 0


def csv_cells(
    data: Bytes, bounds: Wide, plain: bool, delimiter: int, slots: Wide, cells: Wide, states: Flags
) -> None:
    """Say where the cells of every line stand.

    Line `i` is `data[bounds[i] : bounds[i + 1] - 1]`. `plain` promises that no byte is a quote or a
    control character. Column `c` goes to `cells[slots[c]]`, -1 means not wanted. `states` says
    FITS, BLANK or SLOW of every line.
    """
    _call("csv_cells", data, bounds, int(plain), delimiter, slots, cells, states)


def whole_cells(data: Bytes, cells: Wide, values: Wide, states: Flags) -> int:
    """Read -?digits; returns how many cells are left."""
    return _call("whole_cells", data, cells, values, states)


def number_cells(data: Bytes, cells: Wide, values: NDArray[np.float64], states: Flags) -> int:
    """Read decimal numbers without exponent; returns how many cells are left."""
    return _call("number_cells", data, cells, values, states)


def time_cells(
    data: Bytes, cells: Wide, utc: bool, earliest: int, latest: int, values: Wide, states: Flags
) -> int:
    """Read epochs and ISO 8601 as microseconds since 1970; returns how many cells are left.

    Without `utc` a time that names no zone is left. Quotes around a cell are passed over.
    """
    return _call("time_cells", data, cells, int(utc), earliest, latest, values, states)


def json_values(
    data: Bytes,
    bounds: Wide,
    lines: Wide,
    texts: Bytes,
    literals: Wide,
    slots: Wide,
    starts: Wide,
    cells: Wide,
    shapes: NDArray[np.int32],
) -> None:
    """Say of each of `lines` which shape it has, and where its values stand.

    Piece `p` of shape `s`, `starts[s] <= p < starts[s + 1]`, is the literal
    `texts[literals[p] : literals[p + 1]]` and then a value for `slots[p]`. Line `i` is
    `data[bounds[i] : bounds[i + 1] - 1]`; its values go to `cells[slot, i]`, strings with their
    quotes, ABSENT for null; its shape to `shapes[i]`, SHAPELESS for none.
    """
    _call("json_values", data, bounds, lines, texts, literals, slots, starts, cells, shapes)


def _call(name: str, *given: Any) -> int:
    return entry("record_entries", name)(words_of(*given))
