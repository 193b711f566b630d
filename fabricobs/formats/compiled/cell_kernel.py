"""The compiled readers of cells: where the cells of CSV lines stand, and what numbers they are.

`pieces` says what each function takes and gives.
"""

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.compiled.bytesearch import Bytes, compiled, load
from fabricobs.formats.compiled.ffi import (
    ABSENT,
    BLANK,
    FITS,
    LEFT,
    LENGTH_BITS,
    LENGTHS,
    MISSING,
    READ,
    SLOW,
    Flags,
    Wide,
)
from fabricobs.formats.compiled.swar import find_byte, repeated, whole_number, zero_bytes

_QUOTE, _NEWLINE, _RETURN, _SPACE, _MINUS, _DOT, _ZERO, _NINE, _COLON = (
    34,
    10,
    13,
    32,
    45,
    46,
    48,
    57,
    58,
)
_EIGHT = 8
# Decimal to binary is exact up to 15 digits and 22 places (Clinger 1990).
_EXACT_DIGITS = 15
_TENS = 10.0 ** np.arange(23)
_MICROS = 10 ** np.arange(7)


@compiled
def is_plain(data: Bytes, delimiter: int) -> bool:
    """Say that no byte is a quote, or a control character that parts neither cells nor lines."""
    quotes, spaces, tops = repeated(_QUOTE), repeated(_SPACE), repeated(128)
    at = 0
    while at + _EIGHT <= len(data):
        word = load(data, at)
        if (zero_bytes(word ^ quotes) | ((word - spaces) & ~word & tops)) != 0 and not _is_plain(
            data, at, at + _EIGHT, delimiter
        ):
            return False
        at += _EIGHT
    return _is_plain(data, at, len(data), delimiter)


@compiled
def _is_plain(data: Bytes, at: int, stop: int, delimiter: int) -> bool:
    for i in range(at, stop):
        c = data[i]
        if c == _QUOTE or (c < _SPACE and c not in (_NEWLINE, delimiter)):
            return False
    return True


@compiled
def csv_cells(
    data: Bytes, bounds: Wide, plain: bool, delimiter: int, slots: Wide, cells: Wide, states: Flags
) -> None:
    """Say where the cells of every line stand."""
    for line in range(len(bounds) - 1):
        at, stop = bounds[line], bounds[line + 1] - 1
        if stop > at and data[stop - 1] == _RETURN:
            stop -= 1
        if at == stop:
            states[line] = BLANK
            continue
        states[line] = SLOW
        if not plain and not _is_clean(data, at, stop, delimiter):
            continue
        column = 0
        whole = True
        while True:
            if at < stop and data[at] == _QUOTE:
                begin = at + 1
                end = find_byte(data, begin, stop, _QUOTE)
                at = end + 1
                whole = end < stop and (at == stop or data[at] == delimiter)
            else:
                begin = at
                at = end = find_byte(data, at, stop, delimiter)
            if not whole or column == len(slots):
                break
            slot = slots[column]
            if slot >= 0:
                cells[slot, line] = _trimmed(data, begin, end)
            column += 1
            if at == stop:
                states[line] = FITS if column == len(slots) else SLOW
                break
            at += 1


@compiled
def _is_clean(data: Bytes, at: int, stop: int, delimiter: int) -> bool:
    """Say whether a line has no control character, and quotes only around whole cells."""
    before = delimiter
    open_quote = False
    while at < stop:
        c = data[at]
        if c < _SPACE and c != delimiter:
            return False
        if c == _QUOTE:
            if not open_quote and before != delimiter:
                return False
            open_quote = not open_quote
        before = c
        at += 1
    return not open_quote


@compiled
def _trimmed(data: Bytes, begin: int, end: int) -> int:
    """Pack a cell without the blanks around it; ABSENT for nothing."""
    while begin < end and data[begin] == _SPACE:
        begin += 1
    while end > begin and data[end - 1] == _SPACE:
        end -= 1
    return ABSENT if begin == end else (begin << LENGTH_BITS) | (end - begin)


@compiled
def whole_cells(data: Bytes, cells: Wide, values: Wide, states: Flags) -> int:
    """Read -?digits; returns how many cells are left."""
    left = 0
    for i in range(len(cells)):
        if cells[i] == ABSENT:
            values[i] = 0
            states[i] = MISSING
            continue
        at = cells[i] >> LENGTH_BITS
        stop = at + (cells[i] & LENGTHS)
        negative = data[at] == _MINUS
        if negative:
            at += 1
        value = whole_number(data, at, stop)
        if value >= 0:
            values[i] = -value if negative else value
            states[i] = READ
        else:
            values[i] = 0
            states[i] = LEFT
            left += 1
    return left


@compiled
def number_cells(data: Bytes, cells: Wide, values: NDArray[np.float64], states: Flags) -> int:
    """Read decimal numbers without exponent; returns how many cells are left."""
    left = 0
    for i in range(len(cells)):
        values[i] = 0.0
        if cells[i] == ABSENT:
            states[i] = MISSING
            continue
        at = cells[i] >> LENGTH_BITS
        stop = at + (cells[i] & LENGTHS)
        negative = data[at] == _MINUS
        if negative:
            at += 1
        begin = at
        value = 0
        while at < stop and _ZERO <= data[at] <= _NINE:
            value = value * 10 + (data[at] - _ZERO)
            at += 1
        digits = at - begin
        places = 0
        if 0 < digits < _EXACT_DIGITS and at + 1 < stop and data[at] == _DOT:
            at += 1
            begin = at
            while at < stop and _ZERO <= data[at] <= _NINE and at - begin <= _EXACT_DIGITS:
                value = value * 10 + (data[at] - _ZERO)
                at += 1
            places = at - begin
            digits += places
        if at == stop and 0 < digits <= _EXACT_DIGITS:
            number = np.float64(value) / _TENS[places]
            values[i] = -number if negative else number
            states[i] = READ
        else:
            states[i] = LEFT
            left += 1
    return left


@compiled
def time_cells(
    data: Bytes, cells: Wide, utc: bool, earliest: int, latest: int, values: Wide, states: Flags
) -> int:
    """Read epochs and ISO 8601 as microseconds since 1970."""
    left = 0
    for i in range(len(cells)):
        values[i] = 0
        if cells[i] == ABSENT:
            states[i] = MISSING
            continue
        at = cells[i] >> LENGTH_BITS
        stop = at + (cells[i] & LENGTHS)
        if stop - at >= 2 and data[at] == _QUOTE and data[stop - 1] == _QUOTE:
            at += 1
            stop -= 1
        micros = _iso(data, at, stop, utc) if _is_dated(data, at, stop) else _epoch(data, at, stop)
        if earliest <= micros <= latest:
            values[i] = micros
            states[i] = READ
        else:
            states[i] = LEFT
            left += 1
    return left


@compiled
def _is_dated(data: Bytes, at: int, stop: int) -> bool:
    return stop - at >= 19 and (data[at + 4] == _MINUS or data[at + 4] == 47)


@compiled
def _digits(data: Bytes, at: int, count: int) -> int:
    """Return the number `count` digits make, -1 if they are none."""
    value = 0
    for i in range(at, at + count):
        if not _ZERO <= data[i] <= _NINE:
            return -1
        value = value * 10 + (data[i] - _ZERO)
    return value


@compiled
def _fraction(data: Bytes, at: int, stop: int) -> int:
    """Return the digits after a point as millionths, -1 if there are none or more than six."""
    count = stop - at
    if count < 1 or count > 6:
        return -1
    value = _digits(data, at, count)
    return value * _MICROS[6 - count] if value >= 0 else -1


@compiled
def _epoch_digits(data: Bytes, at: int, stop: int) -> int:
    """Return what digits make: 19 of them are nanoseconds."""
    if stop - at < 19:
        return whole_number(data, at, stop)
    first = whole_number(data, at, stop - 1)
    last = whole_number(data, stop - 1, stop)
    return first * 10 + last if 0 <= first < 900_000_000_000_000_000 and last >= 0 else -1


@compiled
def _epoch(data: Bytes, at: int, stop: int) -> int:
    """Return an epoch of any unit as microseconds, -1 for what is none."""
    point = stop
    micros = 0
    if stop - at > 7:
        # A fraction of smaller units than seconds may have lost digits on its way here.
        for i in range(stop - 7, stop):
            if data[i] == _DOT:
                point = i
    number = _epoch_digits(data, at, point)
    if point < stop:
        micros = _fraction(data, point + 1, stop)
        if micros < 0 or number >= 100_000_000_000:
            return -1
    if number < 0:
        return -1
    if number < 100_000_000_000:
        return number * 1_000_000 + micros
    if number < 100_000_000_000_000:
        return number * 1000
    return number if number < 100_000_000_000_000_000 else number // 1000


@compiled
def _iso(data: Bytes, at: int, stop: int, utc: bool) -> int:
    """Return YYYY-MM-DD HH:MM:SS[.ffffff][Z] as microseconds, -1 for what is none."""
    year, month, day = _digits(data, at, 4), _digits(data, at + 5, 2), _digits(data, at + 8, 2)
    hour, minute = _digits(data, at + 11, 2), _digits(data, at + 14, 2)
    second = _digits(data, at + 17, 2)
    between = data[at + 10]
    if (
        min(year, hour, minute, second) < 0
        or data[at + 7] != data[at + 4]
        or not (between == 84 or between == _SPACE or between == 95)
        or data[at + 13] != _COLON
        or data[at + 16] != _COLON
        or not 1 <= month <= 12
        or not 1 <= day <= _days_in(year, month)
        or hour > 23
        or minute > 59
        or second > 59
    ):
        return -1
    at += 19
    zoned = stop > at and data[stop - 1] == 90
    if zoned:
        stop -= 1
    elif not utc:
        return -1
    micros = 0
    if at < stop:
        micros = _fraction(data, at + 1, stop) if data[at] == _DOT else -1
        if micros < 0:
            return -1
    seconds = ((_days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    return seconds * 1_000_000 + micros


@compiled
def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@compiled
def _days_since_1970(year: int, month: int, day: int) -> int:
    """Count days in the Gregorian calendar, years beginning in March."""
    if month <= 2:
        year -= 1
        month += 12
    of_year = (153 * (month - 3) + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + of_year - 719_468
