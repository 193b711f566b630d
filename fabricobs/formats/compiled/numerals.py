"""Reading numbers out of bytes, eight digits at a time, for the compiled matcher.

Each function reads the number that begins at `at` and returns where it ends, or FAILED, or UNSURE,
with its value. What stands at `stop` is no digit.
"""

from typing import Any

import numpy as np

from fabricobs.formats.compiled.bytesearch import Bytes, inlined, load, trailing_zeros

FAILED = -1
UNSURE = -2

_MINUS, _DOT, _ZERO, _NINE, _X, _BLANK = 45, 46, 48, 57, 120, 32
# 10^18 fits 64 bits; a longer number is left to the expressions, which wrap it.
_MOST_DIGITS = 18
_MOST_HEX = 15
# Decimal to binary is exact up to 15 digits and 22 places (Clinger 1990).
_EXACT_DIGITS = 15

_EIGHT = 8
_TOPS = np.uint64(0x8080808080808080)
_ZEROS = np.uint64(0x3030303030303030)
_SMALL = np.uint64(0x2020202020202020)
_TO_TOP_FROM_TEN = np.uint64(0x7676767676767676)
_TO_TOP_FROM_0 = np.uint64(0x5050505050505050)  # 0x80 - "0"
_TO_TOP_AFTER_9 = np.uint64(0x4646464646464646)
_TO_TOP_FROM_A = np.uint64(0x1F1F1F1F1F1F1F1F)
_TO_TOP_AFTER_F = np.uint64(0x1919191919191919)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTE_PAIRS = np.uint64(0x00FF00FF00FF00FF)
_WORD_PAIRS = np.uint64(0x0000FFFF0000FFFF)
_HALF = np.uint64(0xFFFFFFFF)
_OUTER = np.uint64(0x000000FF000000FF)
_MILLIONS = np.uint64(0x000F424000000064)  # 10^6 and 10^2
_TEN_THOUSANDS = np.uint64(0x0000271000000001)  # 10^4 and 1


@inlined
def _digits(word: np.uint64) -> int:
    """Return with how many decimal digits eight bytes begin."""
    other = word ^ _ZEROS
    # A byte that overflows marks itself first: only the lowest mark counts.
    marks = ((other + _TO_TOP_FROM_TEN) | other) & _TOPS
    return trailing_zeros(marks) >> 3


@inlined
def _decimal(word: np.uint64, digits: int) -> Any:
    """Return the number that the first 1 to 8 bytes spell (Lemire's two multiplications)."""
    values = (word ^ _ZEROS) << np.uint64(64 - 8 * digits)
    values = values * np.uint64(10) + (values >> np.uint64(8))
    high = (values & _OUTER) * _MILLIONS
    low = ((values >> np.uint64(16)) & _OUTER) * _TEN_THOUSANDS
    return np.int64((high + low) >> np.uint64(32))


@inlined
def whole(data: Bytes, at: int) -> tuple[int, Any]:
    """Read -?digits."""
    negative = data[at] == _MINUS
    if negative:
        at += 1
    word = load(data, at)
    digits = _digits(word)
    if digits == 0:
        return FAILED, 0
    value = _decimal(word, digits)
    end = at + digits
    if digits == _EIGHT:
        while _ZERO <= data[end] <= _NINE:
            if end - at >= _MOST_DIGITS:
                return UNSURE, 0
            value = value * 10 + (data[end] - _ZERO)
            end += 1
    return end, -value if negative else value


@inlined
def hexadecimal(data: Bytes, at: int) -> tuple[int, Any]:
    """Read hexadecimal digits, 0x before them if given."""
    if data[at] == _ZERO and data[at + 1] == _X:
        at += 2
    begin = at
    value = np.uint64(0)
    while True:
        word = load(data, at) | _SMALL
        # The top bits of bytes beyond ASCII spoil only what comes after them.
        digit = (word + _TO_TOP_FROM_0) & ~(word + _TO_TOP_AFTER_9)
        letter = (word + _TO_TOP_FROM_A) & ~(word + _TO_TOP_AFTER_F)
        digits = trailing_zeros(~((digit | letter) & ~word) & _TOPS) >> 3
        if digits == 0:
            break
        at += digits
        if at - begin > _MOST_HEX:
            return UNSURE, 0
        values = (word & _NIBBLES) + ((letter & _TOPS) >> np.uint64(7)) * np.uint64(9)
        values <<= np.uint64(64 - 8 * digits)
        values = ((values << np.uint64(4)) | (values >> np.uint64(8))) & _BYTE_PAIRS
        values = ((values << np.uint64(8)) | (values >> np.uint64(16))) & _WORD_PAIRS
        values = ((values << np.uint64(16)) | (values >> np.uint64(32))) & _HALF
        value = (value << np.uint64(4 * digits)) | values
        if digits < _EIGHT:
            break
    return (at if at > begin else FAILED), np.int64(value)


@inlined
def decimal_number(data: Bytes, at: int) -> tuple[int, Any]:
    """Read a decimal number without exponent; its value is the bits of the binary number."""
    negative = data[at] == _MINUS
    if negative:
        at += 1
    digits = 0
    places = 0
    value = 0
    dotted = False
    while True:
        c = data[at]
        if _ZERO <= c <= _NINE:
            value = value * 10 + (c - _ZERO)
            digits += 1
            if dotted:
                places += 1
            if digits > _EXACT_DIGITS:
                return UNSURE, 0
        elif c == _DOT and not dotted:
            dotted = True
        else:
            break
        at += 1
    if digits == 0 or data[at] > _NINE:
        return UNSURE, 0
    number = np.float64(value) / 10.0**places
    return at, np.float64(-number if negative else number).view(np.int64)
