"""The compiled matcher: the rules of a file's formats run over the lines of a block.

numba makes LLVM code of everything here, and `jit_cache.py` keeps the machine code made of it. A
line that the programs cannot decide beyond doubt is left to the reference.
"""

from typing import Any

import numpy as np
from numba import carray, cfunc  # type: ignore[attr-defined]

from fabricobs.formats.compiled.backtracking import Numbers, search, take
from fabricobs.formats.compiled.bytesearch import (
    STRIDE,
    Bytes,
    address,
    compiled,
    find,
    find_byte,
    gap,
    holds,
    inlined,
    load,
    to_blank,
    to_control,
    trailing_zeros,
)
from fabricobs.formats.compiled.expressions import HASHING, NEEDS, WIDTH, Expressions
from fabricobs.formats.compiled.kernel_rows import (
    ASK_FIRST,
    NO_ROOM,
    give_rows,
    holds_condition,
    intern,
)
from fabricobs.formats.compiled.matches import (
    ABSENT,
    ASKED,
    ASKED_END,
    ASKS,
    AT,
    BLANK_LINES,
    COUNTS_FOREIGN,
    COUNTS_MISSED,
    DONE,
    END,
    FOREIGN,
    FULL,
    IGNORED_BY,
    KNOWN,
    LAST,
    LEFT_LINES,
    LINE,
    LONGEST,
    MISSED,
    NEW,
    NOBODYS,
    PARSED,
    PREFIX,
    REFUSED,
    ROWS,
    STAMP,
    STAMP_BEGIN,
    STAMP_END,
    WAITS,
    WHOLE_FILE,
    Found,
    Room,
    Vocabulary,
)
from fabricobs.formats.compiled.numerals import (
    FAILED,
    UNSURE,
    local_time,
)
from fabricobs.formats.compiled.programs import (
    ANCHOR,
    BY_WORD,
    CONDITION,
    ENTRY_WIDTH,
    EXPRESSION,
    IGNORED,
    LEFT,
    LEFT_MARKS,
    MARK,
    OUTCOME,
    PLACE,
    SETS,
    SETS_END,
    SHARED,
    Programs,
)
from fabricobs.formats.limits import LIMITS
from fabricobs.formats.source import MARGIN

_NEWLINE, _RETURN, _BLANK, _ZERO, _NINE, _COLON = 10, 13, 32, 48, 57, 58
_BEYOND = 128
_EIGHT = 8
_HASHING = np.uint64(HASHING)
_PREFIX_CHARS = LIMITS.prefix_chars
_MOST_PREFIXES = 4
_STAMP = 19
_MOST_COPIES = 24
_MARGIN = MARGIN + 1024
# What became of a line, beside the outcomes of entries and those of `kernel_rows`: no rule of its
# format fits, it is blank.
_MISSED, _BLANK_LINE = 2, 6
_ROW = 0


@inlined
def _note_words(data: Bytes, at: int, stop: int, room: Room) -> None:
    """Note which words a message holds: a bit of `room.words` for each, see `Compiler.needs`."""
    first, second = np.uint64(0), np.uint64(0)
    for stride in range(at, stop, STRIDE):
        gaps = gap(data, stride)
        if stop - stride <= STRIDE:
            gaps |= np.uint64(1) << np.uint64(stop - stride)
        while gaps != 0:
            end = stride + trailing_zeros(gaps)
            gaps &= gaps - np.uint64(1)
            if end > stop:
                break
            key = load(data, at)
            if end - at < _EIGHT:
                key <<= np.uint64(64 - 8 * max(end - at, 1))
            bit = key * _HASHING >> np.uint64(57)
            if bit < 64:
                first |= np.uint64(1) << bit
            else:
                second |= np.uint64(1) << (bit - np.uint64(64))
            at = end + 1
    room.words[0], room.words[1] = first, second


@inlined
def _may_fit(head: np.uint64, number: int, programs: Programs, room: Room) -> bool:
    """Say whether an entry may fit a message that begins with `head` and whose words are noted."""
    needs = programs.needs[number]
    return bool(
        (head ^ needs[0]) & needs[1] == 0
        and needs[2] & ~room.words[0] == 0
        and needs[3] & ~room.words[1] == 0
    )


@compiled
def _match(
    data: Bytes,
    at: int,
    end: int,
    begin: int,
    stop: int,
    format_: int,
    prefix: int,
    programs: Programs,
    expressions: Expressions,
    vocabulary: Vocabulary,
    found: Found,
    room: Room,
    progress: Numbers,
) -> int:
    """Read message `data[begin:stop]` of text `data[at:end]`, its words noted, by one format.

    Returns the outcome of the first rule that fits, FAILED if none does, or UNSURE, ASK_FIRST,
    NO_ROOM.
    """
    which = format_ * 256 + data[begin]
    outcome = FAILED
    head = load(data, begin)
    below = -1
    for k in range(programs.lists[which], programs.lists[which + 1]):
        number = int(programs.candidates[k])
        if not _may_fit(head, number, programs, room):
            continue
        entry = programs.entries[number]
        if entry[PLACE] <= below:
            continue
        if not holds_condition(programs, entry[CONDITION], prefix, vocabulary, room):
            continue
        to = take(data, begin, begin, stop, expressions, entry[EXPRESSION], room.groups, room.stack)
        if to == UNSURE:
            return UNSURE
        if to < 0:
            continue
        if entry[OUTCOME] == LEFT:
            return UNSURE
        if entry[OUTCOME] == IGNORED:
            if outcome == FAILED:
                progress[IGNORED_BY] = number
                outcome = IGNORED
            return outcome
        failed = give_rows(
            data, at, end, number, programs, expressions, vocabulary, found, room, progress
        )
        if failed != 0:
            return failed
        for i in range(entry[SETS], entry[SETS_END]):
            room.registers[programs.sets[i, 0]] = programs.sets[i, 1]
        outcome = _ROW
        if entry[SHARED] == 0:
            return outcome
        below = entry[PLACE]
    return outcome


@inlined
def _mark_in(data: Bytes, at: int, stop: int, programs: Programs) -> tuple[int, int]:
    """Return the one mark a line holds and where it ends; FAILED for none, UNSURE for several."""
    mark, place = FAILED, -1
    for i in range(len(programs.marks)):
        start, length = programs.marks[i, 0], programs.marks[i, 1]
        found = find(data, at, stop, programs.texts, start, length)
        if found >= 0:
            if i < LEFT_MARKS or mark != FAILED:
                return UNSURE, -1
            mark, place = i, found + length
    return mark, place


@compiled
def _holds_another(
    data: Bytes,
    at: int,
    stop: int,
    mark: int,
    programs: Programs,
    expressions: Expressions,
    room: Room,
) -> bool:
    """Say whether another message of the mark may begin at `at` or behind it."""
    start, length = programs.marks[mark, 0], programs.marks[mark, 1]
    if find(data, at - 1, stop, programs.texts, start, length) < 0:
        return False
    for i in range(len(programs.formats)):
        if programs.formats[i, MARK] == mark:
            which = programs.formats[i, ANCHOR]
            if search(data, at, at, stop, expressions, which, room.groups, room.stack) != FAILED:
                return True
    return False


@compiled
def _peeled(
    data: Bytes, at: int, stop: int, programs: Programs, expressions: Expressions, room: Room
) -> int:
    """Find the prefixes of a line; returns how many there are, and where each ends; or UNSURE."""
    shown, ends = programs.peels[0], room.ends
    for depth in range(_MOST_PREFIXES):
        last = min(stop, at + _PREFIX_CHARS)
        end = at
        for i in range(1 if depth == 0 else 1 + shown, len(programs.peels)):
            which = programs.peels[i]
            first = expressions.firsts[which]
            if first >= 0 and (at >= last or expressions.classes[first * 256 + data[at]] == 0):
                continue
            end = take(data, at, at, last, expressions, which, room.groups, room.stack)
            if end == UNSURE:
                return UNSURE
            if end >= 0:
                break
        if end <= at:
            return depth
        at = end
        ends[depth] = at
    return _MOST_PREFIXES


@compiled
def _prefix_number(
    data: Bytes, at: int, end: int, vocabulary: Vocabulary, room: Room, progress: Numbers
) -> tuple[int, Any]:
    """Return the number of a prefix, and the time that stands in it, ABSENT if none does.

    Prefixes that differ in the digits of a time alone are one.
    """
    known = int(progress[KNOWN])
    number, stamp, stamped = -1, ABSENT, FAILED
    for place in range(at, end - _STAMP + 1):
        if data[place + 16] == _COLON and data[place + 13] == _COLON:
            stamped, stamp = local_time(data, place, end)
            if stamped >= 0:
                for i in range(end - at):
                    byte = data[at + i]
                    digit = place <= at + i < stamped and _ZERO <= byte <= _NINE
                    room.text[i] = _ZERO if digit else byte
                number = intern(room.text, 0, end - at, PREFIX, vocabulary, known)
                progress[STAMP_BEGIN], progress[STAMP_END] = place - at, stamped - at
                break
    if stamped < 0:
        stamp = ABSENT
        number = intern(data, at, end - at, PREFIX, vocabulary, known)
    progress[KNOWN] += number == known
    progress[STAMP] = stamp
    return number, stamp


@compiled
def _read_marked(
    data: Bytes,
    at: int,
    end: int,
    stop: int,
    begin: int,
    mark: int,
    prefix: int,
    programs: Programs,
    expressions: Expressions,
    vocabulary: Vocabulary,
    found: Found,
    room: Room,
    progress: Numbers,
) -> int:
    """Read a line whose message begins behind a prefix that ends in its mark and a word."""
    _note_words(data, begin, stop, room)
    for format_ in range(len(programs.formats)):
        if programs.formats[format_, MARK] == mark:
            outcome = _match(
                data, at, end, begin, stop, format_, prefix,
                programs, expressions, vocabulary, found, room, progress,
            )  # fmt: skip
            if outcome != FAILED:
                return outcome
    return _MISSED


@compiled
def _read_unmarked(
    data: Bytes,
    at: int,
    end: int,
    stop: int,
    anchored: int,
    mark: int,
    prefix: int,
    depths: int,
    programs: Programs,
    expressions: Expressions,
    vocabulary: Vocabulary,
    found: Found,
    room: Room,
    progress: Numbers,
) -> int:
    """Read a line as it is, then what stands below its prefixes.

    `anchored` is where the message begins for the formats of `mark`, if one is there.
    """
    outcome = FAILED
    for depth in range(depths + 1):
        text = at if depth == 0 else room.ends[depth - 1]
        begin = text
        while begin < stop and data[begin] == _BLANK:
            begin += 1
        if begin >= stop:
            if outcome == FAILED:
                outcome = _BLANK_LINE
            continue
        if data[begin] >= _BEYOND:
            return UNSURE
        failed = False
        noted = -1
        for format_ in range(len(programs.formats)):
            theirs = programs.formats[format_, MARK]
            if theirs >= 0 and (theirs != mark or depth > 0):
                continue
            message = begin if theirs < 0 else anchored
            if message != noted:
                _note_words(data, message, stop, room)
                noted = message
            this = _match(
                data, text, end, message, stop, format_, prefix,
                programs, expressions, vocabulary, found, room, progress,
            )  # fmt: skip
            if this == FAILED:
                failed = failed or theirs >= 0
                continue
            if this != IGNORED:
                return this
            outcome = IGNORED
            break
        if failed and outcome == FAILED:
            return _MISSED
    return NOBODYS if outcome == FAILED else outcome


@compiled
def _read_line(
    data: Bytes,
    at: int,
    end: int,
    programs: Programs,
    expressions: Expressions,
    vocabulary: Vocabulary,
    found: Found,
    room: Room,
    progress: Numbers,
) -> tuple[int, int, Any]:
    """Read line `data[at:end]`; returns its outcome, its prefix and the time in that."""
    stop = end
    while stop > at and data[stop - 1] == _BLANK:
        stop -= 1
    begin = at
    while begin < stop and data[begin] == _BLANK:
        begin += 1
    whole_file = progress[WHOLE_FILE] != 0
    if begin == stop:
        return (_BLANK_LINE if whole_file else UNSURE), -1, ABSENT
    if data[stop - 1] >= _BEYOND:
        return UNSURE, -1, ABSENT
    mark, place = _mark_in(data, at, stop, programs)
    if mark == UNSURE:
        return UNSURE, -1, ABSENT
    anchor, by_word = -1, False
    for i in range(len(programs.formats)):
        if mark >= 0 and programs.formats[i, MARK] == mark:
            anchor, by_word = programs.formats[i, ANCHOR], programs.formats[i, BY_WORD] != 0
    if mark >= 0 and anchor < 0:
        return UNSURE, -1, ABSENT
    depths = 0
    if by_word:
        last = progress[LAST]
        begins = vocabulary.begins
        length = begins[last + 1] - begins[last] if last >= 0 else 0
        prefix, stamp = -1, ABSENT
        if (
            last >= 0
            and place < at + length < stop
            and holds(data, at, vocabulary.arena, begins[last], length)
        ):
            begin, prefix = at + length, last
        else:
            begin = to_blank(data, place, stop)
        while begin < stop and data[begin] == _BLANK:
            begin += 1
            prefix = -1
        if begin >= stop or data[begin] >= _BEYOND:
            return UNSURE, -1, ABSENT
        if _holds_another(data, begin, stop, mark, programs, expressions, room):
            return UNSURE, -1, ABSENT
    else:
        if not whole_file:
            return UNSURE, -1, ABSENT
        depths = _peeled(data, at, end, programs, expressions, room)
        if depths == UNSURE:
            return UNSURE, -1, ABSENT
        begin = room.ends[depths - 1] if depths > 0 else at
        if mark < 0:
            for which in programs.headings:
                first = expressions.firsts[which]
                if first >= 0 and expressions.classes[first * 256 + data[at]] == 0:
                    continue
                to = take(data, at, at, stop, expressions, which, room.groups, room.stack)
                if to != FAILED:
                    return UNSURE, -1, ABSENT
        else:
            anchored = search(data, at, at, end, expressions, anchor, room.groups, room.stack)
            if anchored == UNSURE:
                return UNSURE, -1, ABSENT
            begin = max(begin, anchored)
            if anchored < 0:
                mark = FAILED
            elif _holds_another(data, anchored, stop, mark, programs, expressions, room):
                return UNSURE, -1, ABSENT
        prefix, stamp = -1, ABSENT
    if prefix < 0:
        prefix, stamp = _prefix_number(data, at, begin, vocabulary, room, progress)
    if vocabulary.standing[prefix] == NEW:
        progress[ASKED], progress[ASKED_END] = prefix, begin - at
        return ASK_FIRST, -1, ABSENT
    if vocabulary.standing[prefix] == REFUSED:
        return UNSURE, -1, ABSENT
    if by_word:
        if stamp == ABSENT:
            progress[LAST] = prefix
        outcome = _read_marked(
            data, at, end, stop, begin, mark, prefix,
            programs, expressions, vocabulary, found, room, progress,
        )  # fmt: skip
    else:
        if mark >= 0:
            begin = anchored
            while begin < stop and data[begin] == _BLANK:
                begin += 1
        outcome = _read_unmarked(
            data, at, end, stop, begin, mark, prefix, depths,
            programs, expressions, vocabulary, found, room, progress,
        )  # fmt: skip
    return outcome, prefix, stamp


@compiled
def match_lines(
    data: Bytes,
    programs: Programs,
    expressions: Expressions,
    vocabulary: Vocabulary,
    found: Found,
    room: Room,
    progress: Numbers,
) -> int:
    """Match lines until the data ends, or there is no more room, or a new text is to be judged.

    `progress` says where to begin and, afterwards, where to go on. The data end with a newline. A
    line that is left may change what conditions ask for: it is then waited for.
    """
    at, line, last = progress[AT], progress[LINE], progress[END]
    most_left = len(found.left)
    most_rows = len(found.entries)
    most_texts = len(vocabulary.standing) - _MOST_COPIES
    most_bytes = len(vocabulary.arena) - _MARGIN
    waits = len(room.registers) > 1
    reason = DONE
    while at < last:
        plain = True
        stop = to_control(data, at, last)
        following = stop + 1
        if data[stop] == _RETURN and data[following] == _NEWLINE:
            following += 1
        elif data[stop] != _NEWLINE:
            plain = False
            following = find_byte(data, stop, last, np.uint8(_NEWLINE)) + 1
        plain = plain and stop - at <= LONGEST
        before = int(progress[ROWS])
        left = int(progress[LEFT_LINES])
        if left >= most_left:
            reason = WAITS
            break
        # A line has half as many texts as bytes at most; searches may find them again.
        known, length = int(progress[KNOWN]), stop - at
        crowded = known + length // 2 >= most_texts
        crowded = crowded or vocabulary.begins[known] + _MOST_COPIES * length > most_bytes
        # A line that would need all the room there is gets none.
        plain = plain and not (crowded and known == 0)
        if before >= most_rows or (plain and crowded):
            reason = FULL
            break
        outcome, prefix, stamp = UNSURE, -1, ABSENT
        if plain:
            outcome, prefix, stamp = _read_line(
                data, at, stop, programs, expressions, vocabulary, found, room, progress
            )
        if outcome == ASK_FIRST:
            progress[ROWS] = before
            reason = ASKS
            break
        if outcome == NO_ROOM and before > 0:
            progress[ROWS] = before
            reason = FULL
            break
        if outcome == _ROW:
            for row in range(before, progress[ROWS]):
                found.lines[row] = line
                found.prefixes[row] = prefix
                found.stamps[row] = stamp
            progress[PARSED] += 1
        elif outcome == IGNORED:
            found.ignored[progress[IGNORED_BY]] += 1
        elif outcome == _BLANK_LINE:
            progress[BLANK_LINES] += 1
        elif outcome == _MISSED and progress[COUNTS_MISSED] != 0:
            progress[MISSED] += 1
        elif outcome == NOBODYS and progress[COUNTS_FOREIGN] != 0:
            progress[FOREIGN] += 1
        else:
            progress[ROWS] = before
            found.left[left, 0] = line
            found.left[left, 1] = at
            found.left[left, 2] = following
            found.left[left, 3] = outcome
            progress[LEFT_LINES] = left + 1
            if waits:
                reason = WAITS
        at = following
        line += 1
        if reason != DONE:
            break
    progress[AT], progress[LINE] = at, line
    return reason


@cfunc("int64(CPointer(int64))")
def _entry(words: Any) -> int:
    """Run `match_lines` on arrays told by address and length, in the order of its parameters."""
    w = carray(words, 82)
    programs = Programs(
        carray(address(w[2]), (w[3] // ENTRY_WIDTH, ENTRY_WIDTH), np.int32),
        carray(address(w[4]), (w[5] // 3, 3), np.int32),
        carray(address(w[6]), (w[7] // 3, 3), np.int32),
        carray(address(w[8]), (w[9] // 2, 2), np.int32),
        carray(address(w[10]), (w[11] // 2, 2), np.int32),
        carray(address(w[12]), (w[13] // 3, 3), np.int32),
        carray(address(w[14]), (w[15] // 2, 2), np.int32),
        carray(address(w[16]), w[17], np.int32),
        carray(address(w[18]), w[19], np.int32),
        carray(address(w[20]), w[21], np.uint8),
        carray(address(w[22]), w[23], np.uint8),
        carray(address(w[24]), (w[25] // NEEDS, NEEDS), np.uint64),
        carray(address(w[26]), w[27], np.int32),
        carray(address(w[28]), w[29], np.int32),
    )
    expressions = Expressions(
        carray(address(w[30]), (w[31] // WIDTH, WIDTH), np.int32),
        carray(address(w[32]), w[33], np.int32),
        carray(address(w[34]), w[35], np.int32),
        carray(address(w[36]), w[37], np.uint8),
        carray(address(w[38]), w[39], np.uint8),
        carray(address(w[40]), (w[41] // 2, 2), np.int32),
    )
    vocabulary = Vocabulary(
        carray(address(w[42]), w[43], np.uint8),
        carray(address(w[44]), w[45], np.int64),
        carray(address(w[46]), w[47], np.int32),
        carray(address(w[48]), w[49], np.uint8),
        carray(address(w[50]), w[51], np.uint8),
        carray(address(w[52]), w[53], np.uint8),
    )
    rows = w[55]
    found = Found(
        carray(address(w[54]), rows, np.int32),
        carray(address(w[56]), rows, np.int64),
        carray(address(w[58]), rows, np.int32),
        carray(address(w[60]), rows, np.int64),
        carray(address(w[62]), (w[63] // rows, rows), np.int64),
        carray(address(w[64]), (w[65] // 4, 4), np.int64),
        carray(address(w[66]), w[67], np.int64),
    )
    room = Room(
        carray(address(w[68]), w[69], np.int64),
        carray(address(w[70]), (w[71] // 3, 3), np.int64),
        carray(address(w[72]), w[73], np.uint8),
        carray(address(w[74]), w[75], np.int32),
        carray(address(w[76]), w[77], np.int64),
        carray(address(w[78]), w[79], np.uint64),
    )
    progress = carray(address(w[80]), w[81], np.int64)
    data = carray(address(w[0]), w[1], np.uint8)
    return match_lines(data, programs, expressions, vocabulary, found, room, progress)


ENTRIES = {"match_lines": _entry}
