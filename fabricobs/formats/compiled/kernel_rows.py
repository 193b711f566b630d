"""Rows of matched lines, written as columns: values, texts by number, constants, conditions."""

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.compiled.backtracking import Numbers, search
from fabricobs.formats.compiled.bytesearch import (
    Bytes,
    compiled,
    holds,
    inlined,
    load,
)
from fabricobs.formats.compiled.expressions import HASHING, Expressions
from fabricobs.formats.compiled.matches import (
    ABSENT,
    ASKED,
    KNOWN,
    NEW,
    REFUSED,
    ROWS,
    Found,
    Room,
    Vocabulary,
)
from fabricobs.formats.compiled.numerals import (
    UNSURE,
    decimal_number,
    hexadecimal,
    local_time,
    whole,
)
from fabricobs.formats.compiled.programs import (
    EACH,
    EACH_GROUPS,
    EACH_GROUPS_END,
    FINDS,
    FINDS_END,
    GROUPS,
    GROUPS_END,
    NEEDS_ROWS,
    NUMBER,
    REST,
    SLOTS,
    TIME,
    WHOLE,
    Programs,
)

_EIGHT = 8
_HASHING = np.uint64(HASHING)
# Why the rows of a line cannot be given: a text has to be judged first, there is no room.
ASK_FIRST, NO_ROOM = 4, 5


@compiled
def intern(data: Bytes, at: int, length: int, kind: int, vocabulary: Vocabulary, known: int) -> int:
    """Return the number of a text of a type; a new one gets number `known`."""
    arena, begins, places = vocabulary.arena, vocabulary.begins, vocabulary.places
    key = np.uint64(length + (kind << 32))
    i, left = at, length
    while left >= _EIGHT:
        key = (key ^ load(data, i)) * _HASHING
        key ^= key >> np.uint64(32)
        i += _EIGHT
        left -= _EIGHT
    if left > 0:
        key = (key ^ (load(data, i) << np.uint64(64 - 8 * left))) * _HASHING
        key ^= key >> np.uint64(32)
    key *= _HASHING
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
            vocabulary.types[known] = kind
            return known
        same = begins[number + 1] - begins[number] == length and vocabulary.types[number] == kind
        if same and holds(data, at, arena, begins[number], length):
            return number
        place = (place + np.uint64(1)) & mask


@compiled
def put(
    data: Bytes,
    table: NDArray[np.int32],
    asked: NDArray[np.uint8],
    begin: int,
    end: int,
    row: int,
    vocabulary: Vocabulary,
    fields: Numbers,
    groups: Numbers,
    progress: Numbers,
) -> int:
    """Put the groups of a match into fields of a row; returns 0, UNSURE, or ASK_FIRST."""
    for i in range(begin, end):
        group, slot, kind = table[i, 0], table[i, 1], table[i, 2]
        start, stop = groups[2 * group], groups[2 * group + 1]
        value = 0
        if kind >= 0:
            known = int(progress[KNOWN])
            value = intern(data, start, stop - start, kind, vocabulary, known)
            progress[KNOWN] += value == known
            if asked[kind] != 0:
                if vocabulary.standing[value] == NEW:
                    progress[ASKED] = value
                    return ASK_FIRST
                if vocabulary.standing[value] == REFUSED:
                    return UNSURE
        elif kind == NUMBER:
            to, value = decimal_number(data, start, stop)
            if to < 0:
                return UNSURE
        elif kind == TIME:
            to, value = local_time(data, start, stop)
            if to != stop:
                return UNSURE
        else:
            to, value = whole(data, start) if kind == WHOLE else hexadecimal(data, start)
            if to < 0:
                return UNSURE
        fields[slot, row] = value
    return 0


@compiled
def give_rows(
    data: Bytes,
    at: int,
    end: int,
    number: int,
    programs: Programs,
    expressions: Expressions,
    vocabulary: Vocabulary,
    found: Found,
    room: Room,
    progress: Numbers,
) -> int:
    """Add the rows of a message that an entry fits, whose groups are those of its template.

    What is searched in all of the line is searched in `data[at:end]`. Returns 0, UNSURE, ASK_FIRST
    or NO_ROOM.
    """
    entry, groups, fields = programs.entries[number], room.groups, found.fields
    row = int(progress[ROWS])
    table, asked = programs.groups, programs.asked
    if row >= len(found.entries):
        return NO_ROOM
    slots = entry[SLOTS]
    for slot in range(slots):
        fields[slot, row] = ABSENT
    rest = entry[REST]
    from_, to = (at, end) if rest < 0 else (groups[2 * rest], groups[2 * rest + 1])
    failed = put(
        data,
        table,
        asked,
        entry[GROUPS],
        entry[GROUPS_END],
        row,
        vocabulary,
        fields,
        groups,
        progress,
    )
    if failed != 0:
        return failed
    for i in range(entry[FINDS], entry[FINDS_END]):
        what = programs.finds[i]
        after = search(data, at, at, end, expressions, what[0], groups, room.stack)
        if after == UNSURE:
            return UNSURE
        if after >= 0:
            failed = put(
                data, table, asked, what[1], what[2], row, vocabulary, fields, groups, progress
            )
            if failed != 0:
                return failed
    found.entries[row] = number
    if entry[EACH] < 0:
        progress[ROWS] = row + 1
        return 0
    last = row
    searched = from_
    while True:
        searched = search(data, from_, searched, to, expressions, entry[EACH], groups, room.stack)
        if searched == UNSURE:
            return UNSURE
        if searched < 0:
            break
        if last != row:
            if last >= len(found.entries):
                return NO_ROOM
            # What the next hits say is the same but for what each says of its own.
            for slot in range(slots):
                fields[slot, last] = fields[slot, row]
            found.entries[last] = number
        failed = put(
            data, table, asked, entry[EACH_GROUPS], entry[EACH_GROUPS_END], last,
            vocabulary, fields, groups, progress
        )  # fmt: skip
        if failed != 0:
            return failed
        last += 1
    progress[ROWS] = last
    return 0 if last > row or entry[NEEDS_ROWS] == 0 else UNSURE


@inlined
def holds_condition(
    programs: Programs, condition: int, prefix: int, vocabulary: Vocabulary, room: Room
) -> bool:
    """Say whether the prefix, and what is kept, allow the entries of a condition."""
    count = len(programs.conditions)
    if vocabulary.allowed[prefix * count + condition] == 0:
        return False
    register = programs.conditions[condition, 0]
    return bool(register < 0 or room.registers[register] == programs.conditions[condition, 1])
