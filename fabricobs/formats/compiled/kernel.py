"""The compiled matcher: programs of line templates run over the lines of a block.

numba makes machine code of everything here, and `machine.py` keeps it. A line the programs cannot
decide beyond doubt is left to the expressions.
"""

from typing import Any

import numpy as np
from numba import carray, cfunc  # type: ignore[attr-defined]
from numpy.typing import NDArray

from fabricobs.formats.compiled.bytesearch import (
    Bytes,
    address,
    compiled,
    find,
    find_byte,
    holds,
    inlined,
    load,
    to_blank,
    to_unprintable,
)
from fabricobs.formats.compiled.matches import (
    ACCEPTED,
    ASKED,
    ASKS,
    AT,
    DONE,
    END,
    FULL,
    KNOWN,
    LAST,
    LEFT_LINES,
    LINE,
    NEW,
    ROWS,
    SKIPPED,
    Found,
    Vocabulary,
)
from fabricobs.formats.compiled.numerals import FAILED, UNSURE, decimal_number, hexadecimal, whole
from fabricobs.formats.compiled.programs import HASHING, IGNORED, LEFT, Op, Programs
from fabricobs.formats.source import LONGEST_LINE, MARGIN

_LITERAL, _WHOLE, _HEX, _NUMBER, _WORD, _TEXT, _CLASS, _END, _OPEN = (int(op) for op in Op)
_NEWLINE, _RETURN, _BLANK = 10, 13, 32
_EIGHT = 8
# A text is packed as offset << 21 | length until it has its number: lines are shorter than 2 MiB.
_LENGTH_BITS = 21
_LENGTH = (1 << _LENGTH_BITS) - 1
_HASHING = np.uint64(HASHING)


@inlined
def _literal(data: Bytes, at: int, stop: int, texts: Bytes, start: int, length: int) -> int:
    """Return where the literal that begins at `at` ends, FAILED if it does not stand there."""
    if at + length <= stop and holds(data, at, texts, start, length):
        at += length
        if data[at - 1] == _BLANK:
            while at < stop and data[at] == _BLANK:
                at += 1
        return at
    return _elastic(data, at, stop, texts, start, length)


@compiled
def _elastic(data: Bytes, at: int, stop: int, texts: Bytes, start: int, length: int) -> int:
    """Compare byte by byte: a blank of the literal stands for one or more."""
    for i in range(start, start + length):
        if at >= stop or data[at] != texts[i]:
            return FAILED
        at += 1
        if texts[i] == _BLANK:
            while at < stop and data[at] == _BLANK:
                at += 1
    return at


@inlined
def _word_before(data: Bytes, at: int, stop: int, texts: Bytes, start: int, length: int) -> int:
    """Return where the first literal after one byte of a word stands, FAILED before a blank."""
    at += 1
    while at < stop and data[at - 1] != _BLANK:
        if data[at] == texts[start] and _elastic(data, at, stop, texts, start, length) >= 0:
            return at
        at += 1
    return FAILED


@compiled
def _run(
    data: Bytes, at: int, stop: int, programs: Programs, template: int, found: Found, row: int
) -> int:
    """Run one program on a message; returns 0 if it fits, FAILED or UNSURE if not."""
    code, texts, mark, fields = programs.code, programs.texts, programs.mark, found.fields
    failed = FAILED
    for i in range(programs.starts[template], programs.starts[template + 1]):
        op, slot, value = code[i, 0], code[i, 1], 0
        if op == _LITERAL:
            at = _literal(data, at, stop, texts, code[i, 1], code[i, 2])
            if at < 0:
                return failed
            continue
        if op in (_END, _OPEN):
            if at == stop:
                return 0
            if op == _END or data[at] != _BLANK:
                return failed
            second = len(mark) > 0 and find(data, at, stop, mark, 0, len(mark)) >= 0
            return UNSURE if second else 0
        begin = at
        if op == _WHOLE:
            at, value = whole(data, at)
        elif op == _HEX:
            at, value = hexadecimal(data, at)
        elif op == _NUMBER:
            at, value = decimal_number(data, at)
        else:
            after = code[i + 1, 0] == _LITERAL
            start, length = code[i + 1, 1], code[i + 1, 2]
            if op == _WORD and (not after or texts[start] == _BLANK):
                at = to_blank(data, at, stop)
            elif op == _WORD:
                at = _word_before(data, at, stop, texts, start, length)
                if at < 0:
                    return failed
                # The literal may come again further on: a later failure decides nothing.
                failed = UNSURE
            elif op == _CLASS:
                members = code[i, 2] * 256
                while at < stop and programs.classes[members + data[at]]:
                    at += 1
            else:
                at = stop
                if after:
                    at = find(data, begin, stop, texts, start, length)
                    # Blanks inside the literal are elastic, and it may come again further on.
                    failed = UNSURE
                    if at < 0:
                        return failed
                if len(mark) > 0 and find(data, begin, at, mark, 0, len(mark)) >= 0:
                    return UNSURE
            if at == begin and op != _TEXT:
                return failed
            value = (begin << _LENGTH_BITS) | (at - begin)
        if at < 0:
            return min(at, failed)
        if slot >= 0:
            fields[slot, row] = value
    return 0


@inlined
def _candidates(data: Bytes, at: int, stop: int, programs: Programs) -> int:
    """Return which list of candidates is that of a message's first word."""
    length = to_blank(data, at, stop) - at
    if length == 0:
        return 0
    key = load(data, at)
    if length < _EIGHT:
        key <<= np.uint64(64 - 8 * length)
    table = programs.word_table
    mask = np.uint64(len(table) - 1)
    place = ((key + np.uint64(length)) * _HASHING >> np.uint64(40)) & mask
    while True:
        word = int(table[place])
        if word < 0:
            return 0
        start = programs.words[word]
        same_length = programs.words[word + 1] - start == length
        if same_length and holds(data, at, programs.texts, start, length):
            return word + 1
        place = (place + np.uint64(1)) & mask


@inlined
def _match(data: Bytes, at: int, stop: int, programs: Programs, found: Found, row: int) -> int:
    """Return the first template that fits the message, LEFT if that is not sure."""
    which = _candidates(data, at, stop, programs)
    for k in range(programs.lists[which], programs.lists[which + 1]):
        template = int(programs.candidates[k])
        if not programs.followed[template]:
            first = programs.starts[template]
            start, length = programs.code[first, 1], programs.code[first, 2]
            if find(data, at, stop, programs.texts, start, length) >= 0:
                return LEFT
            continue
        outcome = _run(data, at, stop, programs, template, found, row)
        if outcome == 0:
            return template
        if outcome == UNSURE:
            return LEFT
    return LEFT


@inlined
def _intern(data: Bytes, at: int, length: int, vocabulary: Vocabulary, known: int) -> int:
    """Return the number of a text; a new one gets number `known`."""
    arena, begins, places = vocabulary.arena, vocabulary.begins, vocabulary.places
    key = np.uint64(length)
    i, left = at, length
    while left >= _EIGHT:
        key = (key ^ load(data, i)) * _HASHING
        key ^= key >> np.uint64(32)
        i += _EIGHT
        left -= _EIGHT
    if left > 0:
        key = (key ^ (load(data, i) << np.uint64(64 - 8 * left))) * _HASHING
        key ^= key >> np.uint64(32)
    mask = np.uint64(len(places) - 1)
    place = (key ^ (key >> np.uint64(29))) & mask
    while True:
        number = int(places[place])
        if number < 0:
            places[place] = known
            begin = begins[known]
            for k in range(length):
                arena[begin + k] = data[at + k]
            begins[known + 1] = begin + length
            vocabulary.standing[known] = NEW
            return known
        same_length = begins[number + 1] - begins[number] == length
        if same_length and holds(data, at, arena, begins[number], length):
            return number
        place = (place + np.uint64(1)) & mask


@inlined
def _number_texts(
    data: Bytes, texts: int, found: Found, row: int, vocabulary: Vocabulary, known: int
) -> int:
    """Put numbers in the place of a row's texts; returns how many texts are known then."""
    fields = found.fields
    slot = 0
    while texts != 0:
        if texts & 1 != 0:
            packed = fields[slot, row]
            begin, length = packed >> _LENGTH_BITS, packed & _LENGTH
            number = _intern(data, begin, length, vocabulary, known)
            fields[slot, row] = number
            known += number == known
        texts >>= 1
        slot += 1
    return known


@compiled
def match_lines(
    data: Bytes,
    programs: Programs,
    vocabulary: Vocabulary,
    found: Found,
    progress: NDArray[np.int64],
) -> int:
    """Match lines until the data ends, or there is no more room, or a new prefix is to be judged.

    `progress` says where to begin and, afterwards, where to go on. The data end with a newline. A
    prefix reaches to the end of the blanks after the word that follows the mark; without a mark
    there is none.
    """
    at, line, end = progress[AT], progress[LINE], progress[END]
    rows, known, last = progress[ROWS], progress[KNOWN], progress[LAST]
    skipped, left = progress[SKIPPED], progress[LEFT_LINES]
    mark = programs.mark
    begins, standing = vocabulary.begins, vocabulary.standing
    most_rows = len(found.templates)
    most_left = len(found.left)
    most_texts = len(standing) - len(found.fields) - 1
    most_bytes = len(vocabulary.arena) - MARGIN
    reason = DONE
    while at < end:
        plain = True
        stop = to_unprintable(data, at, end)
        following = stop + 1
        if data[stop] == _RETURN and data[following] == _NEWLINE:
            following += 1
        elif data[stop] != _NEWLINE:
            plain = False
            following = find_byte(data, stop, end, np.uint8(_NEWLINE)) + 1
        # So that an overlong line never asks for more room than there is.
        plain = plain and following - at <= LONGEST_LINE
        full = rows >= most_rows or left >= most_left or known >= most_texts
        if full or (plain and begins[known] + (stop - at) > most_bytes):
            reason = FULL
            break
        template = LEFT
        begin = at
        prefix = -1
        if plain and len(mark) > 0:
            length = begins[last + 1] - begins[last] if last >= 0 else 0
            if (
                last >= 0
                and at + length < stop
                and holds(data, at, vocabulary.arena, begins[last], length)
            ):
                begin = at + length
                prefix = last
            else:
                begin = find(data, at, stop, mark, 0, len(mark))
                begin = stop if begin < 0 else to_blank(data, begin + len(mark), stop)
        while begin < stop and data[begin] == _BLANK:
            begin += 1
            prefix = -1
        if plain and begin < stop:
            while data[stop - 1] == _BLANK:
                stop -= 1
            template = _match(data, begin, stop, programs, found, rows)
        if template >= 0 and len(mark) > 0:
            if prefix < 0:
                prefix = _intern(data, at, begin - at, vocabulary, known)
                known += prefix == known
            if standing[prefix] == NEW:
                progress[ASKED] = prefix
                reason = ASKS
                break
            if standing[prefix] == ACCEPTED:
                last = prefix
            else:
                template = LEFT
        outcome = programs.outcomes[template] if template >= 0 else LEFT
        if outcome == LEFT:
            found.left[left, 0] = line
            found.left[left, 1] = at
            found.left[left, 2] = following
            left += 1
        elif outcome == IGNORED:
            skipped += 1
        else:
            known = _number_texts(data, programs.texts_of[template], found, rows, vocabulary, known)
            found.templates[rows] = template
            found.lines[rows] = line
            found.prefixes[rows] = prefix
            rows += 1
        at = following
        line += 1
    progress[AT], progress[LINE] = at, line
    progress[ROWS], progress[KNOWN], progress[LAST] = rows, known, last
    progress[SKIPPED], progress[LEFT_LINES] = skipped, left
    return reason


@cfunc("int64(CPointer(int64))")
def _entry(words: Any) -> int:
    """Run `match_lines` on arrays told by address and length, in the order of its parameters."""
    w = carray(words, 46)
    programs = Programs(
        carray(address(w[2]), (w[3] // 3, 3), np.int32),
        carray(address(w[4]), w[5], np.int32),
        carray(address(w[6]), w[7], np.uint8),
        carray(address(w[8]), w[9], np.int32),
        carray(address(w[10]), w[11], np.int64),
        carray(address(w[12]), w[13], np.uint8),
        carray(address(w[14]), w[15], np.uint8),
        carray(address(w[16]), w[17], np.int32),
        carray(address(w[18]), w[19], np.int32),
        carray(address(w[20]), w[21], np.int32),
        carray(address(w[22]), w[23], np.int32),
        carray(address(w[24]), w[25], np.uint8),
    )
    vocabulary = Vocabulary(
        carray(address(w[26]), w[27], np.uint8),
        carray(address(w[28]), w[29], np.int64),
        carray(address(w[30]), w[31], np.int32),
        carray(address(w[32]), w[33], np.uint8),
    )
    rows = w[35]
    found = Found(
        carray(address(w[34]), rows, np.int32),
        carray(address(w[36]), rows, np.int64),
        carray(address(w[38]), rows, np.int32),
        carray(address(w[40]), (w[41] // rows, rows), np.int64),
        carray(address(w[42]), (w[43] // 3, 3), np.int64),
    )
    progress = carray(address(w[44]), w[45], np.int64)
    return match_lines(carray(address(w[0]), w[1], np.uint8), programs, vocabulary, found, progress)


ENTRIES = {"match_lines": _entry}
