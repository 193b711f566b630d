"""The compiled reader of JSON lines: the values of lines of a known shape.

A shape is the text between a line's values, byte by byte. A line of no known shape, and one with
an escape or a control character in a value, is left to the reader in Python.
"""

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.compiled.bytesearch import Bytes, compiled, load, trailing_zeros
from fabricobs.formats.compiled.ffi import ABSENT, END, LENGTH_BITS, SHAPELESS, Wide
from fabricobs.formats.compiled.swar import holds, repeated, zero_bytes

_QUOTE, _ESCAPE, _SPACE, _TAB, _RETURN, _NEWLINE = 34, 92, 32, 9, 13, 10
_COMMA, _COLON, _MINUS, _PLUS, _DOT, _ZERO, _NINE = 44, 58, 45, 43, 46, 48, 57
_LIST, _LIST_END, _OBJECT, _OBJECT_END = 91, 93, 123, 125
_N, _T, _F = 110, 116, 102
_WORDS = np.frombuffer(b"nulltruefalse", np.uint8)
_EIGHT = 8
# Python refuses whole numbers of more than 4300 digits.
_MOST_DIGITS = 300
_DEEPEST = 60
# What may come next inside a nested value.
_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _COLON_NEXT, _AFTER = range(6)


@compiled
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
    """Say of each of `lines` which shape it has, and where its values stand."""
    last = 0
    count = len(starts) - 1
    for k in range(len(lines)):
        line = lines[k]
        at, stop = bounds[line], bounds[line + 1] - 1
        while stop > at and (
            data[stop - 1] == _RETURN or data[stop - 1] == _SPACE or data[stop - 1] == _TAB
        ):
            stop -= 1
        shapes[line] = SHAPELESS
        for turn in range(count):
            # A line mostly has the shape of the one before.
            shape = (last + turn) % count
            if _fits(
                data, at, stop, texts, literals, slots, starts[shape], starts[shape + 1], cells,
                line,
            ):  # fmt: skip
                shapes[line] = shape
                last = shape
                break


@compiled
def _fits(
    data: Bytes,
    at: int,
    stop: int,
    texts: Bytes,
    literals: Wide,
    slots: Wide,
    first: int,
    last: int,
    cells: Wide,
    line: int,
) -> bool:
    for piece in range(first, last):
        start = literals[piece]
        length = literals[piece + 1] - start
        slot = slots[piece]
        end = ABSENT
        if holds(data, at, stop, texts, start, length):
            at += length
            if slot == END:
                end = at if at == stop else ABSENT
            else:
                end = _value(data, at, stop)
        if end < 0:
            for taken in range(first, piece):
                if slots[taken] >= 0:
                    cells[slots[taken], line] = ABSENT
            return False
        if slot >= 0:
            null = data[at] == _N
            cells[slot, line] = ABSENT if null else (at << LENGTH_BITS) | (end - at)
        at = end
    return True


@compiled
def _value(data: Bytes, at: int, stop: int) -> int:
    """Return where the value that begins at `at` ends, -1 where that is not sure."""
    if at >= stop:
        return -1
    if data[at] == _LIST or data[at] == _OBJECT:
        return _nested(data, at, stop)
    return _scalar(data, at, stop)


@compiled
def _scalar(data: Bytes, at: int, stop: int) -> int:
    c = data[at]
    if c == _QUOTE:
        return _string(data, at + 1, stop)
    if c == _MINUS or _ZERO <= c <= _NINE:
        return _number(data, at, stop)
    if c == _N and holds(data, at, stop, _WORDS, 0, 4):
        return at + 4
    if c == _T and holds(data, at, stop, _WORDS, 4, 4):
        return at + 4
    if c == _F and holds(data, at, stop, _WORDS, 8, 5):
        return at + 5
    return -1


@compiled
def _string(data: Bytes, at: int, stop: int) -> int:
    """Return the place after the closing quote, -1 where an escape or control byte comes first."""
    quotes, escapes, spaces = repeated(_QUOTE), repeated(_ESCAPE), repeated(_SPACE)
    tops = repeated(128)
    while at + _EIGHT <= len(data) and at < stop:
        word = load(data, at)
        # The lowest byte marked is rightly marked, whatever is said of those above it.
        found = zero_bytes(word ^ quotes) | zero_bytes(word ^ escapes)
        found |= (word - spaces) & ~word & tops
        if found != 0:
            at += trailing_zeros(found) >> 3
            return at + 1 if at < stop and data[at] == _QUOTE else -1
        at += _EIGHT
    while at < stop:
        c = data[at]
        if c == _QUOTE:
            return at + 1
        if c == _ESCAPE or c < _SPACE:
            return -1
        at += 1
    return -1


@compiled
def _digits(data: Bytes, at: int, stop: int) -> int:
    """Return where a run of digits ends, -1 if there is none or it is too long."""
    begin = at
    while at < stop and _ZERO <= data[at] <= _NINE:
        at += 1
    return at if 0 < at - begin <= _MOST_DIGITS else -1


@compiled
def _number(data: Bytes, at: int, stop: int) -> int:
    if data[at] == _MINUS:
        at += 1
    begin = at
    at = _digits(data, at, stop)
    if at < 0 or (data[begin] == _ZERO and at > begin + 1):
        return -1
    if at < stop and data[at] == _DOT:
        at = _digits(data, at + 1, stop)
        if at < 0:
            return -1
    if at < stop and (data[at] == 101 or data[at] == 69):
        at += 1
        if at < stop and (data[at] == _PLUS or data[at] == _MINUS):
            at += 1
        at = _digits(data, at, stop)
    return at


@compiled
def _nested(data: Bytes, at: int, stop: int) -> int:
    """Return where a list or object ends; one bit a level says which of them it is in."""
    depth = 0
    objects = 0
    state = _VALUE
    while at < stop:
        c = data[at]
        closes = False
        if c in (_SPACE, _TAB):
            at += 1
            continue
        if state in (_VALUE, _VALUE_OR_END):
            if c in (_LIST, _OBJECT):
                depth += 1
                if depth > _DEEPEST:
                    return -1
                objects = (objects << 1) | (c == _OBJECT)
                state = _KEY_OR_END if c == _OBJECT else _VALUE_OR_END
                at += 1
            elif c == _LIST_END and state == _VALUE_OR_END:
                closes = True
            else:
                at = _scalar(data, at, stop)
                state = _AFTER
        elif state in (_KEY, _KEY_OR_END):
            if c == _QUOTE:
                at = _string(data, at + 1, stop)
                state = _COLON_NEXT
            elif c == _OBJECT_END and state == _KEY_OR_END:
                closes = True
            else:
                return -1
        elif state == _COLON_NEXT:
            if c != _COLON:
                return -1
            at += 1
            state = _VALUE
        elif c == _COMMA:
            at += 1
            state = _KEY if objects & 1 else _VALUE
        elif c == (_OBJECT_END if objects & 1 else _LIST_END):
            closes = True
        else:
            return -1
        if at < 0:
            return -1
        if closes:
            at += 1
            depth -= 1
            objects >>= 1
            state = _AFTER
            if depth == 0:
                return at
    return -1
