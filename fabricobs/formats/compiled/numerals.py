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
_PLUS, _COMMA, _SLASH, _COLON, _UNDERSCORE, _T, _E, _SMALL_LETTER = 43, 44, 47, 58, 95, 84, 101, 32
# 10^18 fits 64 bits; a longer number is left to the expressions, which wrap it.
_MOST_DIGITS = 18
_MOST_HEX = 15
# Decimal to binary is exact up to 15 digits and 22 places (Clinger 1990).
_EXACT_DIGITS = 15
_EXACT_POWER = 22

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
def decimal_number(data: Bytes, at: int, stop: int) -> tuple[int, Any]:
    """Read the decimal number that ends at `stop`; its value is the bits of the binary number."""
    negative = data[at] == _MINUS
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
            digits += value > 0
            places += dotted
            if digits > _EXACT_DIGITS:
                return UNSURE, 0
        elif c == _DOT and not dotted:
            dotted = True
        else:
            break
        at += 1
    power = -places
    if at < stop:
        if data[at] | _SMALL_LETTER != _E or at + 1 >= stop:
            return UNSURE, 0
        at += 1
        sign = data[at]
        if sign in (_MINUS, _PLUS):
            at += 1
        if at >= stop or stop - at > 2:
            return UNSURE, 0
        exponent = 0
        while at < stop:
            if not _ZERO <= data[at] <= _NINE:
                return UNSURE, 0
            exponent = exponent * 10 + (data[at] - _ZERO)
            at += 1
        power += -exponent if sign == _MINUS else exponent
    if not -_EXACT_POWER <= power <= _EXACT_POWER:
        return UNSURE, 0
    number = np.float64(value)
    number = number / 10.0**-power if power < 0 else number * 10.0**power
    return at, np.float64(-number if negative else number).view(np.int64)


@inlined
def _pair(data: Bytes, at: int) -> int:
    """Return two digits as a number, below 0 if they are none."""
    tens, ones = int(data[at]) - _ZERO, int(data[at + 1]) - _ZERO
    return 10 * tens + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else -1


@inlined
def local_time(data: Bytes, at: int, stop: int) -> tuple[int, Any]:
    """Read 2026-03-02T09:00:01.25 as microseconds since 1970 of its own zone.

    UNSURE is the end of what is no time between 1990 and 2100; digits beyond six are dropped.
    """
    if stop - at < 19:
        return FAILED, 0
    dash, gap = data[at + 4], data[at + 10]
    shaped = dash in (_MINUS, _SLASH) and data[at + 7] == dash
    shaped = shaped and gap in (_BLANK, _T, _UNDERSCORE)
    if not (shaped and data[at + 13] == _COLON and data[at + 16] == _COLON):
        return FAILED, 0
    century, rest = _pair(data, at), _pair(data, at + 2)
    month, day = _pair(data, at + 5), _pair(data, at + 8)
    hour, minute, second = _pair(data, at + 11), _pair(data, at + 14), _pair(data, at + 17)
    if min(century, rest, hour, minute, second) < 0:
        return FAILED, 0
    year = 100 * century + rest
    # The last days of months differ, and the first and last day may be outside in another zone.
    most = 28 + (year % 4 == 0) if month == 2 else 30 + ((month + (month > 7)) & 1)
    sure = 1990 < year < 2099 and 1 <= month <= 12 and 1 <= day <= most
    if not sure or hour > 23 or minute > 59 or second > 59:
        return UNSURE, 0
    # Days since 1970 (Hinnant, days_from_civil).
    shifted = year - (month <= 2)
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468
    value = ((days * 24 + hour) * 60 + minute) * 60 + second
    at += 19
    micros = 0
    if (
        at + 1 < stop
        and (data[at] == _DOT or data[at] == _COMMA)
        and _ZERO <= data[at + 1] <= _NINE
    ):
        at += 1
        scale = 100_000
        places = 0
        while at < stop and places < 9 and _ZERO <= data[at] <= _NINE:
            micros += scale * (int(data[at]) - _ZERO)
            scale //= 10
            places += 1
            at += 1
    return at, value * 1_000_000 + micros
