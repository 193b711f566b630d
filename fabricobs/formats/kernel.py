"""The compiled matcher: programs of line templates run over the bytes of a block.

Everything here is compiled to machine code by numba and cached; it releases the interpreter lock.
A line the programs cannot decide beyond doubt gets rule SLOW and is read by the expressions.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from fabricobs.formats.programs import Op

Bytes = NDArray[np.uint8]
Table = NDArray[np.int32]
Flags = NDArray[np.bool_]
Wide = NDArray[np.int64]

SLOW = -1
# A text value is packed as offset << 21 | length: lines are shorter than 2 MiB.
LENGTH_BITS = 21

_LITERAL, _WHOLE, _HEX, _NUMBER, _WORD, _TEXT, _END, _OPEN = (int(op) for op in Op)
_FAILED = -1
_UNSURE = -2
_NEWLINE, _RETURN, _BLANK, _MINUS, _DOT, _ZERO, _NINE, _X, _TILDE = (
    10,
    13,
    32,
    45,
    46,
    48,
    57,
    120,
    126,
)
# 10^18 fits 64 bits; a longer number is left to the expressions, which wrap it.
_MOST_DIGITS = 18
_MOST_HEX = 15
# Decimal to binary is exact up to 15 digits and 22 places (Clinger 1990).
_EXACT_DIGITS = 15


_compiled = njit(cache=True, nogil=True)
_EIGHT_BLANKS = np.uint64(0x2020202020202020)
_EIGHT_ONES = np.uint64(0x0101010101010101)
_EIGHT_TOPS = np.uint64(0x8080808080808080)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_EIGHT = 8


def _load_type(typing_context: Any, data: Any, at: Any) -> Any:
    """Load the eight bytes at `at`, whatever their alignment."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        word = builder.bitcast(place, ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return types.uint64(data, types.int64), generate


def _trailing_zeros_type(typing_context: Any, word: Any) -> Any:
    """Count the zero bits below the lowest set one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.int64(types.uint64), generate


_load = cast(Callable[[Bytes, int], np.uint64], intrinsic(_load_type))
_trailing_zeros = cast(Callable[[np.uint64], int], intrinsic(_trailing_zeros_type))


@_compiled
def _holds(data: Bytes, at: int, stop: int, texts: Bytes, start: int, length: int) -> bool:
    """Say whether the bytes stand at `at`."""
    if at + length > stop:
        return False
    i = 0
    while i + _EIGHT <= length:
        if _load(data, at + i) != _load(texts, start + i):
            return False
        i += _EIGHT
    if i == length:
        return True
    if at + i + _EIGHT <= len(data) and start + i + _EIGHT <= len(texts):
        unread = np.uint64(64 - 8 * (length - i))
        differing = _load(data, at + i) ^ _load(texts, start + i)
        return bool(differing << unread == 0)
    while i < length:
        if data[at + i] != texts[start + i]:
            return False
        i += 1
    return True


@_compiled
def _to_blank(data: Bytes, at: int, stop: int) -> int:
    """Return where the first blank at or after `at` stands, `stop` if there is none before it."""
    while at + _EIGHT <= len(data):
        differing = _load(data, at) ^ _EIGHT_BLANKS
        zero = (differing - _EIGHT_ONES) & ~differing & _EIGHT_TOPS
        if zero != 0:
            return min(at + (_trailing_zeros(zero) >> 3), stop)
        at += _EIGHT
        if at >= stop:
            return stop
    while at < stop and data[at] != _BLANK:
        at += 1
    return at


@_compiled
def _find(data: Bytes, at: int, stop: int, texts: Bytes, start: int, length: int) -> int:
    """Return where the literal first stands at or after `at`, -1 if nowhere."""
    if length == 0:
        return at
    first = texts[start]
    while at + length <= stop:
        if data[at] == first and _holds(data, at, stop, texts, start, length):
            return at
        at += 1
    return -1


@_compiled
def _whole(data: Bytes, at: int, stop: int, fields: Wide, slot: int, base: int) -> int:
    """Read -?digits; returns where it ends, _FAILED or _UNSURE."""
    negative = at < stop and data[at] == _MINUS
    if negative:
        at += 1
    begin = at
    value = 0
    while at < stop and _ZERO <= data[at] <= _NINE:
        value = value * 10 + (data[at] - _ZERO)
        at += 1
    if at == begin:
        return _FAILED
    if at - begin > _MOST_DIGITS:
        return _UNSURE
    if slot >= 0:
        fields[base + slot] = -value if negative else value
    return at


@_compiled
def _hex(data: Bytes, at: int, stop: int, fields: Wide, slot: int, base: int) -> int:
    """Read hexadecimal digits, 0x before them if given."""
    if at + 1 < stop and data[at] == _ZERO and data[at + 1] == _X:
        at += 2
    begin = at
    value = 0
    while at < stop:
        c = data[at]
        if _ZERO <= c <= _NINE:
            value = value * 16 + (c - _ZERO)
        elif 97 <= c <= 102:
            value = value * 16 + (c - 87)
        elif 65 <= c <= 70:
            value = value * 16 + (c - 55)
        else:
            break
        at += 1
    if at == begin:
        return _FAILED
    if at - begin > _MOST_HEX:
        return _UNSURE
    if slot >= 0:
        fields[base + slot] = value
    return at


@_compiled
def _number(data: Bytes, at: int, stop: int, fields: Wide, slot: int, base: int) -> int:
    """Read a decimal number without exponent; its bits go to the slot."""
    negative = at < stop and data[at] == _MINUS
    if negative:
        at += 1
    digits = 0
    places = 0
    value = 0
    dotted = False
    while at < stop:
        c = data[at]
        if _ZERO <= c <= _NINE:
            value = value * 10 + (c - _ZERO)
            digits += 1
            if dotted:
                places += 1
            if digits > _EXACT_DIGITS:
                return _UNSURE
        elif c == _DOT and not dotted:
            dotted = True
        else:
            break
        at += 1
    if digits == 0 or (at < stop and data[at] != _BLANK and data[at] > _ZERO + 9):
        return _UNSURE
    if slot >= 0:
        number = np.float64(value) / 10.0**places
        fields[base + slot] = np.float64(-number if negative else number).view(np.int64)
    return at


@_compiled
def _run(
    data: Bytes,
    at: int,
    stop: int,
    code: Table,
    first: int,
    last: int,
    texts: Bytes,
    mark: Bytes,
    fields: Wide,
    base: int,
) -> int:
    """Run one program on a message; returns 0 if it fits, _FAILED or _UNSURE if not."""
    failed = _FAILED
    for i in range(first, last):
        op, a, b = code[i, 0], code[i, 1], code[i, 2]
        if op == _LITERAL:
            at = _literal(data, at, stop, texts, a, b)
            if at < 0:
                return failed
        elif op == _WORD:
            begin = at
            until = texts[code[i + 1, 1]] if code[i + 1, 0] == _LITERAL else _BLANK
            if until == _BLANK:
                at = _to_blank(data, at, stop)
            else:
                at = _word_before(data, at, stop, texts, code[i + 1, 1], code[i + 1, 2])
                if at < 0:
                    return failed
                # The literal may come again further on: a later failure decides nothing.
                failed = _UNSURE
            if at == begin:
                return failed
            if a >= 0:
                fields[base + a] = (begin << LENGTH_BITS) | (at - begin)
        elif op == _WHOLE:
            at = _whole(data, at, stop, fields, a, base)
            if at < 0:
                return min(at, failed)
        elif op == _HEX:
            at = _hex(data, at, stop, fields, a, base)
            if at < 0:
                return min(at, failed)
        elif op == _NUMBER:
            at = _number(data, at, stop, fields, a, base)
            if at < 0:
                return min(at, failed)
        elif op == _TEXT:
            begin = at
            at = stop
            if code[i + 1, 0] == _LITERAL:
                at = _find(data, begin, stop, texts, code[i + 1, 1], code[i + 1, 2])
                # Blanks inside the literal are elastic, and it may come again further on.
                failed = _UNSURE
                if at < 0:
                    return failed
            if _find(data, begin, at, mark, 0, len(mark)) >= 0:
                return _UNSURE
            if a >= 0:
                fields[base + a] = (begin << LENGTH_BITS) | (at - begin)
        elif op == _END:
            if at < stop:
                return failed
        elif at < stop and (data[at] != _BLANK or _find(data, at, stop, mark, 0, len(mark)) >= 0):
            return _UNSURE if data[at] == _BLANK else failed
    return 0


@_compiled
def _literal(data: Bytes, at: int, stop: int, texts: Bytes, start: int, length: int) -> int:
    """Return where the literal that begins at `at` ends, _FAILED if it does not stand there."""
    if at + length <= stop and _holds(data, at, stop, texts, start, length):
        at += length
        if at < stop and data[at] == _BLANK and data[at - 1] == _BLANK:
            while at < stop and data[at] == _BLANK:
                at += 1
        return at
    for i in range(start, start + length):
        if at >= stop or data[at] != texts[i]:
            return _FAILED
        at += 1
        if texts[i] == _BLANK:
            while at < stop and data[at] == _BLANK:
                at += 1
    return at


@_compiled
def _word_before(data: Bytes, at: int, stop: int, texts: Bytes, start: int, length: int) -> int:
    """Return where the first literal after one byte of a word stands, _FAILED before a blank."""
    at += 1
    while at < stop and data[at - 1] != _BLANK:
        if data[at] == texts[start] and _literal(data, at, stop, texts, start, length) >= 0:
            return at
        at += 1
    return _FAILED


@_compiled
def _candidates(data: Bytes, at: int, stop: int, texts: Bytes, words: Table) -> int:
    """Return the list of candidates for a message that begins at `at`."""
    end = _to_blank(data, at, stop)
    low, high = 0, len(words) - 1
    while low < high:
        middle = (low + high) // 2
        start, length = words[middle], words[middle + 1] - words[middle]
        order = 0
        for i in range(min(length, end - at)):
            order = int(data[at + i]) - int(texts[start + i])
            if order != 0:
                break
        if order == 0:
            order = (end - at) - length
        if order == 0:
            return middle + 1
        if order < 0:
            high = middle
        else:
            low = middle + 1
    return 0


@_compiled
def _match(
    data: Bytes,
    at: int,
    stop: int,
    code: Table,
    starts: Table,
    followed: Flags,
    usable: Flags,
    texts: Bytes,
    words: Table,
    candidates: Table,
    lists: Table,
    mark: Bytes,
    fields: Wide,
    base: int,
) -> int:
    """Return the first template that fits the message, SLOW if that is not sure or gives no row."""
    which = _candidates(data, at, stop, texts, words)
    for k in range(lists[which], lists[which + 1]):
        template = candidates[k]
        first, last = starts[template], starts[template + 1]
        if not followed[template]:
            if _find(data, at, stop, texts, code[first, 1], code[first, 2]) >= 0:
                return SLOW
            continue
        outcome = _run(data, at, stop, code, first, last, texts, mark, fields, base)
        if outcome == 0:
            return template if usable[template] else SLOW
        if outcome == _UNSURE:
            return SLOW
    return SLOW


@_compiled
def _intern(data: Bytes, at: int, stop: int, slots: Wide, arena: Wide, count: int) -> int:
    """Return the number of a text among those seen; a new one gets number `count`."""
    key = np.uint64(1469598103934665603)
    i = at
    while i + _EIGHT <= stop:
        key = (key ^ _load(data, i)) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(32)
        i += _EIGHT
    while i < stop:
        key = (key ^ np.uint64(data[i])) * np.uint64(1099511628211)
        i += 1
    mask = np.uint64(len(slots) - 1)
    place = (key ^ (key >> np.uint64(29))) & mask
    while True:
        number = int(slots[place])
        if number < 0:
            slots[place] = count
            arena[count] = (at << LENGTH_BITS) | (stop - at)
            return count
        begin = arena[number] >> LENGTH_BITS
        length = arena[number] & ((1 << LENGTH_BITS) - 1)
        if length == stop - at and _holds(data, at, stop, data, begin, length):
            return number
        place = (place + np.uint64(1)) & mask


@_compiled
def _is_plain(data: Bytes, at: int, stop: int) -> bool:
    """Say whether a line is printable ASCII."""
    for i in range(at, stop):
        if data[i] < _BLANK or data[i] > _TILDE:
            return False
    return True


@_compiled
def match_block(
    data: Bytes,
    bounds: Wide,
    plain: bool,
    mark: Bytes,
    code: Table,
    starts: Table,
    followed: Flags,
    usable: Flags,
    texts: Bytes,
    words: Table,
    candidates: Table,
    lists: Table,
    rules: Table,
    prefixes: Table,
    fields: Wide,
    width: int,
    slots: Wide,
    arena: Wide,
) -> int:
    """Match every line of a block; returns the number of distinct prefixes.

    Line `i` is `data[bounds[i] : bounds[i + 1] - 1]`. `plain` promises printable ASCII.
    A line with two marks is slow. A prefix reaches to the end of the blanks after the word that
    follows the mark. `rules` gets each line's template or SLOW, `prefixes` the number of its
    prefix, `fields` (`width` a line) its values: whole numbers, bits of decimal numbers, or packed
    texts; `arena` where each distinct prefix stands first.
    """
    known = 0
    last = -1
    last_begin = 0
    last_length = -1
    for line in range(len(bounds) - 1):
        at, stop = bounds[line], bounds[line + 1] - 1
        rules[line] = SLOW
        if stop > at and data[stop - 1] == _RETURN:
            stop -= 1
        if last_length > 0 and _holds(data, at, stop, data, last_begin, last_length):
            begin = at + last_length
            same = True
        else:
            begin = _find(data, at, stop, mark, 0, len(mark))
            if begin < 0:
                continue
            begin += len(mark)
            begin = _to_blank(data, begin, stop)
            same = False
        while begin < stop and data[begin] == _BLANK:
            begin += 1
            same = False
        if begin >= stop or not (plain or _is_plain(data, at, stop)):
            continue
        while stop > begin and data[stop - 1] == _BLANK:
            stop -= 1
        rule = _match(
            data, begin, stop, code, starts, followed, usable, texts, words, candidates, lists,
            mark, fields, line * width,
        )  # fmt: skip
        rules[line] = rule
        if rule < 0:
            continue
        if not same:
            last = _intern(data, at, begin, slots, arena, known)
            if last == known:
                known += 1
            last_begin, last_length = at, begin - at
        prefixes[line] = last
    return known


@_compiled
def intern_column(data: Bytes, values: Wide, codes: Table, slots: Wide, arena: Wide) -> int:
    """Number the packed texts of a column; returns how many distinct ones there are."""
    known = 0
    for i in range(len(values)):
        at = values[i] >> LENGTH_BITS
        stop = at + (values[i] & ((1 << LENGTH_BITS) - 1))
        codes[i] = _intern(data, at, stop, slots, arena, known)
        if codes[i] == known:
            known += 1
    return known


@_compiled
def survey(data: Bytes) -> tuple[int, int]:
    """Return how many newlines, and how many bytes that are not printable ASCII, a block has."""
    newlines = 0
    others = 0
    for c in data:
        newlines += c == _NEWLINE
        others += (c < _BLANK) | (c > _TILDE)
    return newlines, others


@_compiled
def line_bounds(data: Bytes, bounds: Wide) -> None:
    """Fill in where each line begins, and one more."""
    line = 0
    bounds[0] = 0
    for i in range(len(data)):
        if data[i] == _NEWLINE:
            line += 1
            bounds[line] = i + 1
