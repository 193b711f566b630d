"""The compiled cutter: rows of ruled tables read from bytes, as many as are beyond doubt."""

from typing import Any

import numpy as np
from numba import carray, cfunc  # type: ignore[attr-defined]

from fabricobs.formats.compiled.bytesearch import address, compiled
from fabricobs.formats.compiled.cuts import PASSED, TEXT, Bytes, Flags, Whole

_NEWLINE, _BLANK, _COMMA, _MINUS, _SLASH, _ZERO, _NINE, _TILDE = 10, 32, 44, 45, 47, 48, 57, 126
_UNDERSCORE, _SMALL_A, _SMALL_N, _SMALL_Z = 95, 97, 110, 122
_SMALL = 0x20  # the bit that makes a letter small
_BETWEEN_COMMAS = 3
# 10^18 fits 64 bits; a longer number is left to Python, which wraps it.
_MOST_DIGITS = 18


@compiled
def _is_letter(byte: int) -> bool:
    return _SMALL_A <= byte | _SMALL <= _SMALL_Z


@compiled
def _is_name(data: Bytes, begin: int, end: int) -> bool:
    """Say whether a cell holds nothing but letters, digits and / : . _ -."""
    for at in range(begin, end):
        byte = data[at]
        # The colon stands behind the digits, point and slash before them.
        if not _is_letter(byte) and not _MINUS <= byte <= _NINE + 1 and byte != _UNDERSCORE:
            return False
    return begin < end


@compiled
def _is_no_value(data: Bytes, begin: int, end: int) -> bool:
    """Say whether a cell is one of the usual ways to write that there is no value."""
    length = end - begin
    if length == 0:
        return True
    if length <= 2:
        return bool(data[begin] == _MINUS and data[end - 1] == _MINUS)
    return bool(
        length == 3
        and data[begin] | _SMALL == _SMALL_N
        and data[begin + 1] == _SLASH
        and data[begin + 2] | _SMALL == _SMALL_A
    )


@compiled
def _number(data: Bytes, begin: int, end: int) -> tuple[bool, int]:
    """Read -?digits, plain or with a comma before every three; False for anything else."""
    negative = data[begin] == _MINUS
    at = begin + 1 if negative else begin
    value, digits, in_block, commas = 0, 0, 0, 0
    while at < end:
        byte = data[at]
        if _ZERO <= byte <= _NINE:
            value = value * 10 + (byte - _ZERO)
            digits += 1
            in_block += 1
        elif byte == _COMMA:
            whole = in_block == _BETWEEN_COMMAS
            if in_block == 0 or in_block > _BETWEEN_COMMAS or (commas > 0 and not whole):
                return False, 0
            commas += 1
            in_block = 0
        else:
            return False, 0
        at += 1
    if digits == 0 or digits > _MOST_DIGITS or (commas > 0 and in_block != _BETWEEN_COMMAS):
        return False, 0
    return True, -value if negative else value


@compiled
def _cut_lines(
    data: Bytes, at: int, columns: Whole, values: Whole, missing: Flags, texts: Bytes
) -> tuple[int, int, int, int]:
    begins, ends, places = columns[0], columns[1], columns[2]
    count = len(begins)
    rows, written, absent = 0, 0, 0
    stop = len(data)
    while rows < len(values):
        end = at
        while end < stop and _BLANK <= data[end] <= _TILDE:
            end += 1
        # A tab, carriage return or letter outside ASCII, and a line without its end.
        if end >= stop or data[end] != _NEWLINE or written + (end - at) + count > len(texts):
            break
        sure = True
        noted, gone = written, 0
        for column in range(count):
            begin = min(at + begins[column], end)
            last = end if column == count - 1 else min(at + ends[column], end)
            if column < count - 1:
                following = min(at + begins[column + 1], end)
                for gap in range(last, following):
                    if data[gap] != _BLANK:
                        sure = False
            place = places[column]
            if place == PASSED:
                continue
            while begin < last and data[begin] == _BLANK:
                begin += 1
            while last > begin and data[last - 1] == _BLANK:
                last -= 1
            if place == TEXT:
                if not _is_name(data, begin, last) or (column == 0 and not _is_letter(data[begin])):
                    sure = False
                    break
                for byte in range(begin, last):
                    texts[noted] = data[byte]
                    noted += 1
                texts[noted] = _NEWLINE
                noted += 1
                continue
            if _is_no_value(data, begin, last):
                values[rows, place] = 0
                missing[rows, place] = True
                gone += 1
                continue
            read, number = _number(data, begin, last)
            if not read:
                sure = False
                break
            values[rows, place] = number
            missing[rows, place] = False
        if not sure:
            break
        rows += 1
        written = noted
        absent += gone
        at = end + 1
    return rows, at, written, absent


@cfunc("int64(CPointer(int64))")
def _entry(words: Any) -> int:
    """Run `_cut_lines` on arrays told by address and length; its answers go to the last one."""
    w = carray(words, 14)
    width = w[11]
    rows = w[6] // width
    told = carray(address(w[12]), w[13], np.int64)
    told[0], told[1], told[2], told[3] = _cut_lines(
        carray(address(w[0]), w[1], np.uint8),
        w[2],
        carray(address(w[3]), (3, w[4] // 3), np.int64),
        carray(address(w[5]), (rows, width), np.int64),
        carray(address(w[7]), (rows, width), np.bool_),
        carray(address(w[9]), w[10], np.uint8),
    )
    return 0


ENTRIES = {"cut_lines": _entry}
