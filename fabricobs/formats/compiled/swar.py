"""Bytes eight at a time, within the bounds of a block: what the readers of records are made of."""

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.compiled.bytesearch import Bytes, compiled, load, trailing_zeros
from fabricobs.formats.compiled.ffi import LENGTH_BITS, LENGTHS, Wide

_ONES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_EIGHT = 8


@compiled
def zero_bytes(word: np.uint64) -> np.uint64:
    """Return the word with the top bit of its lowest zero byte set, and none below it."""
    return (word - _ONES) & ~word & _TOPS


@compiled
def repeated(byte: int) -> np.uint64:
    """Return a word of eight times the byte."""
    return np.uint64(byte) * _ONES


@compiled
def holds(data: Bytes, at: int, stop: int, texts: Bytes, start: int, length: int) -> bool:
    """Say whether `length` bytes of `texts` stand at `at`, before `stop`."""
    if at + length > stop:
        return False
    i = 0
    while i + _EIGHT <= length:
        if load(data, at + i) != load(texts, start + i):
            return False
        i += _EIGHT
    if i == length:
        return True
    if at + i + _EIGHT <= len(data) and start + i + _EIGHT <= len(texts):
        unread = np.uint64(64 - 8 * (length - i))
        differing = load(data, at + i) ^ load(texts, start + i)
        return bool(differing << unread == 0)
    while i < length:
        if data[at + i] != texts[start + i]:
            return False
        i += 1
    return True


@compiled
def find_byte(data: Bytes, at: int, stop: int, byte: int) -> int:
    """Return where the byte first stands at or after `at`, `stop` if not before it."""
    wanted = repeated(byte)
    while at + _EIGHT <= len(data):
        found = zero_bytes(load(data, at) ^ wanted)
        if found != 0:
            return min(at + (trailing_zeros(found) >> 3), stop)
        at += _EIGHT
        if at >= stop:
            return stop
    while at < stop and data[at] != byte:
        at += 1
    return at


@compiled
def line_bounds(data: Bytes, bounds: Wide) -> int:
    """Fill in where each line begins, and one more; returns how many newlines there are.

    Newlines for which `bounds` has no room are counted alone.
    """
    line = 0
    at = 0
    room = len(bounds)
    bounds[0] = 0
    newlines = repeated(10)
    low = np.uint64(0x7F7F7F7F7F7F7F7F)
    while at + _EIGHT <= len(data):
        differing = load(data, at) ^ newlines
        # Exact in every byte, unlike `zero_bytes`, which is in the lowest alone.
        found = ~(((differing & low) + low) | differing | low)
        while found != 0:
            line += 1
            if line < room:
                bounds[line] = at + (trailing_zeros(found) >> 3) + 1
            found &= found - np.uint64(1)
        at += _EIGHT
    while at < len(data):
        if data[at] == 10:
            line += 1
            if line < room:
                bounds[line] = at + 1
        at += 1
    return line


@compiled
def whole_number(data: Bytes, at: int, stop: int) -> int:
    """Return the number that up to 18 digits make, -1 if they are none or more."""
    count = stop - at
    if count < 1 or count > 18:
        return -1
    if count > 16 or stop < 16:
        value = 0
        for i in range(at, stop):
            if data[i] < 48 or data[i] > 57:
                return -1
            value = value * 10 + (data[i] - 48)
        return value
    last = _eight_digits(load(data, stop - _EIGHT), min(count, _EIGHT))
    if count <= _EIGHT or last < 0:
        return int(last)
    first = _eight_digits(load(data, stop - 2 * _EIGHT), count - _EIGHT)
    return int(first * 100_000_000 + last) if first >= 0 else -1


@compiled
def _eight_digits(word: np.uint64, count: int) -> np.int64:
    """Return the number the last `count` bytes of a word make, -1 if one is no digit."""
    unread = np.uint64(64 - 8 * count)
    zeros = np.uint64(0x3030303030303030)
    if count < _EIGHT:
        word = ((word >> unread) << unread) | (zeros >> np.uint64(8 * count))
    tops = np.uint64(0xF0F0F0F0F0F0F0F0)
    if (word & tops) != zeros or ((word + np.uint64(0x0606060606060606)) & tops) != zeros:
        return np.int64(-1)
    # Pairs of digits, then fours, then all eight are put together.
    word = (word & np.uint64(0x0F0F0F0F0F0F0F0F)) * np.uint64(2561) >> np.uint64(8)
    word = (word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601) >> np.uint64(16)
    word = (word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001) >> np.uint64(32)
    return np.int64(word)


@compiled
def intern(data: Bytes, pieces: Wide, codes: NDArray[np.int32], slots: Wide, seen: Wide) -> int:
    """Number the packed pieces; returns how many distinct ones there are.

    `slots` is a hash table of a power of two places, all -1, more than there are pieces; `seen`
    gets the first piece of each number.
    """
    known = 0
    mask = np.uint64(len(slots) - 1)
    last = -1
    for i in range(len(pieces)):
        at = pieces[i] >> LENGTH_BITS
        length = pieces[i] & LENGTHS
        # Most columns repeat the value of the line before.
        if last >= 0 and (seen[last] & LENGTHS) == length:
            begin = seen[last] >> LENGTH_BITS
            if holds(data, at, at + length, data, begin, length):
                codes[i] = last
                continue
        key = np.uint64(1469598103934665603)
        stop = at + length
        while at + _EIGHT <= stop:
            key = (key ^ load(data, at)) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(32)
            at += _EIGHT
        while at < stop:
            key = (key ^ np.uint64(data[at])) * np.uint64(1099511628211)
            at += 1
        at = stop - length
        place = (key ^ (key >> np.uint64(29))) & mask
        while True:
            number = slots[place]
            if number < 0:
                slots[place] = known
                seen[known] = pieces[i]
                number = known
                known += 1
                break
            begin = seen[number] >> LENGTH_BITS
            if (seen[number] & LENGTHS) == length and holds(data, at, stop, data, begin, length):
                break
            place = (place + np.uint64(1)) & mask
        last = number
        codes[i] = number
    return known
