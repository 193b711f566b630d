"""Regular expressions as programs: small instructions that the compiled matcher runs on bytes.

A program takes exactly the text its expression takes, with the same groups: it tries the same
choices in the same order and goes back where Python would. It knows what definitions use, which is
less than Python's syntax; an expression with more in it has no program.

Bytes beyond ASCII are parts of characters. A class that holds all of those characters takes them;
where another class meets one, the matcher is unsure.
"""

from collections.abc import Sequence
from enum import IntEnum
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.source import MARGIN


class Op(IntEnum):
    """Instructions: (op, a, b, c, next, text, length)."""

    LITERAL = 0  # the bytes texts[text : text + length]
    WORDS = 1  # the same, a blank for one or more
    # b to c bytes of class a, as many as there are: fewer would never do. `text` is 1 more than the
    # place of the groups that begins there, and in its upper bits 1 more than the one that ends.
    ALL = 2
    MOST = 3  # b to c bytes of class a, rather more than fewer
    LEAST = 4  # b to c bytes of class a, rather fewer than more; `text` must stand behind them
    SAVE = 5  # place a of the groups is here
    SPLIT = 6  # go on at next, or else at a
    BEGIN = 7  # the beginning of the text
    END = 8  # the end of the text
    BORDER = 9  # a letter, digit or underscore on one side only
    FITS = 10  # the expression has taken the text up to here


class Expressions(NamedTuple):
    """The programs: expression `i` begins at instruction `starts[i]`.

    `firsts[i]` is the class of bytes it may begin with, -1 for any or none.
    """

    code: NDArray[np.int32]  # instructions x 7
    starts: NDArray[np.int32]
    firsts: NDArray[np.int32]
    texts: NDArray[np.uint8]
    classes: NDArray[np.uint8]  # classes x 256, flat: NO, YES or MAYBE
    needles: NDArray[np.int32]  # (begin, length) of the text with which each begins, length 0: none


# Multiplying by it spreads bytes over 64 bits: 2^64 divided by the golden ratio (Knuth).
HASHING = 0x9E3779B97F4A7C15
# How many numbers `needs` has.
NEEDS = 4
NO, YES, MAYBE = 0, 1, 2
WIDTH = 7
UNBOUNDED = 1 << 30
_ASCII = 128
_BLANK = 32
_END = 256
# What an item may begin with: bytes, and the end of the text.
_First = frozenset[int]
_ANYTHING: _First = frozenset(range(_END + 1))
_BEYOND: _First = frozenset(range(_ASCII, _END))
_WORD: _First = frozenset(b for b in range(_ASCII) if chr(b).isalnum() or chr(b) == "_")
_CATEGORIES: dict[Any, _First] = {
    _constants.CATEGORY_DIGIT: frozenset(b"0123456789"),
    _constants.CATEGORY_SPACE: frozenset(b for b in range(_ASCII) if chr(b).isspace()),
    _constants.CATEGORY_WORD: _WORD,
}
_NEGATED = {
    _constants.CATEGORY_NOT_DIGIT: _constants.CATEGORY_DIGIT,
    _constants.CATEGORY_NOT_SPACE: _constants.CATEGORY_SPACE,
    _constants.CATEGORY_NOT_WORD: _constants.CATEGORY_WORD,
}
_PRINTABLE: _First = frozenset(range(_BLANK, _END))
_NO_BLANK: _First = frozenset(range(_BLANK + 1, _ASCII))
# The `length` of ALL and MOST: their class is everything, or everything of ASCII but blanks.
ANYTHING, UNBROKEN = 1, 2
# Above it stands the place of the groups that ends with ALL.
ENDS = 1 << 8
# Added to b of LEAST where its class is everything.
EVERYTHING = 1 << 20
_TEXTS = {Op.LITERAL, Op.WORDS}
_PLACES = {Op.SAVE, Op.BEGIN}
_REPEATS = {_constants.MAX_REPEAT: Op.MOST, _constants.MIN_REPEAT: Op.LEAST}
_MOST_COPIES = 8


class _UnsupportedError(Exception):
    """The expression holds something that no program can do."""


class Compiler:
    """Collects the programs of many expressions; items are compiled from the last to the first."""

    def __init__(self) -> None:
        self._code: list[list[int]] = []
        self._starts: list[int] = []
        self._firsts: list[int] = []
        self._texts = bytearray()
        self._classes: list[bytes] = []
        self._class_of: dict[_First, int] = {}
        self._known: dict[str, int | None] = {}
        self._splits: dict[int, frozenset[bytes]] = {}

    def add(self, expression: str) -> int | None:
        """Compile an expression; return its number, None if no program can follow it."""
        if expression not in self._known:
            self._known[expression] = self._add(expression)
        return self._known[expression]

    def _add(self, expression: str) -> int | None:
        parsed = _parser.parse(expression)
        flags = parsed.state.flags
        try:
            if flags & (_constants.SRE_FLAG_IGNORECASE | _constants.SRE_FLAG_ASCII):
                raise _UnsupportedError
            start, first = self._sequence(list(parsed), self._emit(Op.FITS), _ANYTHING)
        except _UnsupportedError:
            return None
        self._starts.append(start)
        self._firsts.append(-1 if _END in first else self._class(first))
        return len(self._starts) - 1

    def expressions(self) -> Expressions:
        """Return all that was added."""
        return Expressions(
            np.array(self._code or [[0] * WIDTH], np.int32),
            np.array(self._starts, np.int32),
            np.array(self._firsts, np.int32),
            np.frombuffer(bytes(self._texts) + bytes(MARGIN), np.uint8),
            np.frombuffer(b"".join(self._classes) or bytes(256), np.uint8),
            np.array([self._needed(start) for start in self._starts] or [(0, 0)], np.int32),
        )

    def first_bytes(self, numbers: Sequence[int]) -> NDArray[np.bool_]:
        """Say of expressions, and each of 256 bytes, whether the byte may begin the expression."""
        classes = [self._firsts[number] for number in numbers]
        tables = [self._classes[c] if c >= 0 else bytes([MAYBE]) * 256 for c in classes]
        bytes_of = np.frombuffer(b"".join(tables), np.uint8).reshape(-1, 256)
        return bytes_of > NO

    def needs(self, number: int) -> tuple[int, int, int, int]:
        """Return what a text must hold that an expression takes, so that few are tried in vain.

        Eight bytes with which it begins, and which of their bits count; then 128 bits, one for each
        word that must stand in it: the upper 7 bits of its hash say which. Blanks and characters
        beyond ASCII part words.
        """
        start = self._starts[number]
        op, *_, begin, length = self._code[self._behind_places(start)]
        head = bytes(self._texts[begin : begin + length]) if op in _TEXTS else b""
        head = head[: head.find(b" ") + 1 or 8][:8]
        bits = 0
        for word in self._words(start, at_begin=True):
            key = int.from_bytes(word[:8].rjust(8, b"\0"), "little")
            bits |= 1 << (key * HASHING % (1 << 64) >> 57)
        low, high = bits % (1 << 64), bits >> 64
        return int.from_bytes(head, "little"), (1 << 8 * len(head)) - 1, low, high

    def _words(self, pc: int, *, at_begin: bool = False) -> frozenset[bytes]:
        """Return the words of every text that is taken from `pc` on."""
        found: set[bytes] = set()
        while True:
            op, other, _, _, then, begin, length = self._code[pc]
            if op == Op.SPLIT:
                return frozenset(found | self._words_of_ways(pc, then, other))
            if op in _TEXTS:
                text = bytes(self._texts[begin : begin + length])
                end = self._parts_words(then)
                found.update((b" " * at_begin + text + b" " * end).split(b" ")[1:-1])
            if op == Op.FITS:
                return frozenset(found - {b""})
            pc, at_begin = then, at_begin and op in _PLACES

    def _parts_words(self, pc: int) -> bool:
        """Say that nothing but a blank, a character beyond ASCII or the end may stand at `pc`."""
        op, other, least, _, then, begin, _ = self._code[pc]
        if op in _TEXTS:
            return self._texts[begin] == _BLANK
        if op == Op.SPLIT:
            return max(then, other) < pc and self._parts_words(then) and self._parts_words(other)
        if op in {Op.ALL, Op.MOST, Op.LEAST}:
            blank = not any(self._classes[other][_BLANK + 1 : _ASCII])
            return blank and (least % EVERYTHING > 0 or self._parts_words(then))
        return op == Op.END or (op == Op.SAVE and self._parts_words(then))

    def _words_of_ways(self, pc: int, *ways: int) -> frozenset[bytes]:
        """Return what all ways of a split have; what comes again and again is none of them."""
        if pc not in self._splits:
            first, *others = (self._words(way) for way in ways if way < pc)
            self._splits[pc] = first.intersection(*others)
        return self._splits[pc]

    def _behind_places(self, pc: int) -> int:
        while self._code[pc][0] in _PLACES:
            pc = self._code[pc][4]
        return pc

    def text(self, text: bytes) -> tuple[int, int]:
        """Keep a text; return where it begins, and its length."""
        begin = self._texts.find(text)
        if begin < 0:
            begin = len(self._texts)
            self._texts += text
        return begin, len(text)

    def _class(self, members: _First) -> int:
        """Keep a class; bytes beyond ASCII are all in it, all not, or it takes a closer look."""
        if members not in self._class_of:
            beyond = members & _BEYOND
            other = NO if not beyond else YES if beyond == _BEYOND else MAYBE
            table = bytes(
                (YES if b in members else NO) if b < _ASCII else other for b in range(256)
            )
            if table not in self._classes:
                self._classes.append(table)
            self._class_of[members] = self._classes.index(table)
        return self._class_of[members]

    def _emit(self, op: Op, *operands: int, then: int = -1, text: tuple[int, int] = (0, 0)) -> int:
        a, b, c = (*operands, 0, 0, 0)[:3]
        self._code.append([op, a, b, c, then, *text])
        return len(self._code) - 1

    def _sequence(self, items: Sequence[Any], then: int, follow: _First) -> tuple[int, _First]:
        """Compile items; return their first instruction, and what it may begin with."""
        for op, argument in reversed(items):
            then, follow = self._item(op, argument, then, follow)
        return then, follow

    def _item(self, op: Any, argument: Any, then: int, follow: _First) -> tuple[int, _First]:
        members = _members(op, argument)
        if members is not None:
            if len(members) == 1 and (byte := next(iter(members))) < _ASCII:
                return self._literal(bytes([byte]), Op.LITERAL, then), members
            return self._many(Op.ALL, members, 1, 1, then), members
        if op is _constants.SUBPATTERN:
            group, added, removed, inside = argument
            if added or removed or 2 * (group or 0) > ENDS:
                raise _UnsupportedError
            if group is None:
                return self._sequence(list(inside), then, follow)
            end = self._emit(Op.SAVE, 2 * group - 1, then=then)
            start, first = self._sequence(list(inside), end, follow)
            code = self._code[start]
            if code[0] == Op.ALL and start > end and code[5] % ENDS == 0:
                code[5] += 2 * group - 1
                return start, first
            return self._emit(Op.SAVE, 2 * group - 2, then=start), first
        if op in _REPEATS:
            least, most, inside = argument
            most = UNBOUNDED if most is _constants.MAXREPEAT else int(most)
            return self._repeat(_REPEATS[op], int(least), most, list(inside), then, follow)
        if op is _constants.BRANCH:
            return self._branch([list(part) for part in argument[1]], then, follow)
        if op is _constants.AT:
            return self._place(argument, then, follow)
        raise _UnsupportedError

    def _literal(self, text: bytes, op: Op, then: int) -> int:
        """Emit a text; what touches a text behind it is one with that."""
        op_behind, _, _, _, behind, begin, length = self._code[then]
        kind = Op(op_behind)
        behind_text = bytes(self._texts[begin : begin + length])
        both = {op, kind}
        # In WORDS every blank stands for several: a single one stays apart from it.
        single = Op.LITERAL in both and (text == b" " if op == Op.LITERAL else b" " in behind_text)
        if both <= {Op.LITERAL, Op.WORDS} and (len(both) == 1 or not single):
            return self._emit(max(both), then=behind, text=self.text(text + behind_text))
        return self._emit(op, then=then, text=self.text(text))

    def _repeat(
        self, op: Op, least: int, most: int, items: list[Any], then: int, follow: _First
    ) -> tuple[int, _First]:
        members = _members(*items[0]) if len(items) == 1 else None
        if members is None:
            return self._repeated_group(op, least, most, items, then, follow)
        first = members if least else members | follow
        if not members & follow:
            op = Op.ALL  # the first byte behind is none of these
            if members == {_BLANK} and (least, most) == (1, UNBOUNDED):
                return self._literal(b" ", Op.WORDS, then), members
        return self._many(op, members, least, most, then), first

    def _many(self, op: Op, members: _First, least: int, most: int, then: int) -> int:
        """Emit so many bytes of a class; a class that is everything is marked."""
        if most != UNBOUNDED or least > 1:
            members -= {_ASCII}  # characters beyond ASCII would have to be counted
        anything = members >= _PRINTABLE
        text = 0, ANYTHING if anything else UNBROKEN if members >= _NO_BLANK else 0
        if op == Op.LEAST:
            text = self._needed(then)
            least |= EVERYTHING if anything else 0
        if op == Op.ALL and self._code[then][0] == Op.SAVE:
            _, place, _, _, then, _, _ = self._code[then]
            text = ENDS * (place + 1), text[1]
        return self._emit(op, self._class(members), least, most, then=then, text=text)

    def _needed(self, then: int) -> tuple[int, int]:
        """Return the text that must stand behind, as far as its first blank."""
        op, *_, begin, length = self._code[self._behind_places(then)]
        if op not in _TEXTS:
            return 0, 0
        text = bytes(self._texts[begin : begin + length])
        return begin, (text.find(b" ") + 1 or length) if op == Op.WORDS else length

    def _repeated_group(
        self, op: Op, least: int, most: int, items: list[Any], then: int, follow: _First
    ) -> tuple[int, _First]:
        # Of groups that take nothing, or part of a capture, Python has rules of its own.
        _, inside = self._sequence(items, then, frozenset({_END}))
        copies = least + (0 if most == UNBOUNDED else most - least)
        if _END in inside or copies > _MOST_COPIES or _captures(items):
            raise _UnsupportedError
        start, first = then, follow
        if most == UNBOUNDED:
            split = self._emit(Op.SPLIT)
            body, begins = self._sequence(items, split, inside | follow)
            self._code[split] = self._split(op, body, then)
            start, first = split, begins | follow
        else:
            for _ in range(most - least):
                body, begins = self._sequence(items, start, first)
                self._code.append(self._split(op, body, then))
                start, first = len(self._code) - 1, begins | follow
        for _ in range(least):
            start, first = self._sequence(items, start, first)
        return start, first

    def _split(self, op: Op, body: int, then: int) -> list[int]:
        first, second = (body, then) if op == Op.MOST else (then, body)
        return [Op.SPLIT, second, 0, 0, first, 0, 0]

    def _branch(self, parts: list[list[Any]], then: int, follow: _First) -> tuple[int, _First]:
        start, first = self._sequence(parts[-1], then, follow)
        for part in reversed(parts[:-1]):
            begin, begins = self._sequence(part, then, follow)
            start = self._emit(Op.SPLIT, start, then=begin)
            first |= begins
        return start, first

    def _place(self, argument: Any, then: int, follow: _First) -> tuple[int, _First]:
        if argument in {_constants.AT_END, _constants.AT_END_STRING}:
            return self._emit(Op.END, then=then), frozenset({_END})
        if argument in {_constants.AT_BEGINNING, _constants.AT_BEGINNING_STRING}:
            return self._emit(Op.BEGIN, then=then), follow
        if argument is _constants.AT_BOUNDARY:
            return self._emit(Op.BORDER, then=then), follow
        raise _UnsupportedError


def _members(op: Any, argument: Any) -> _First | None:
    """Return the bytes of an item that takes one character; None for any other item."""
    if op is _constants.LITERAL:
        return frozenset({argument}) if argument < _ASCII else None
    if op is _constants.NOT_LITERAL:
        return frozenset(range(_END)) - {argument} if argument < _ASCII else None
    if op is _constants.ANY:
        return frozenset(range(_END)) - frozenset(b"\n")
    if op is not _constants.IN:
        return None
    members: set[int] = set()
    negated = False
    for kind, value in argument:
        if kind is _constants.NEGATE:
            negated = True
        elif kind is _constants.LITERAL and value < _ASCII:
            members.add(value)
        elif kind is _constants.RANGE and value[1] < _ASCII:
            members.update(range(value[0], value[1] + 1))
        elif kind is _constants.CATEGORY:
            members |= _category(value)
        else:
            return None
    return frozenset(range(_END)) - members if negated else frozenset(members)


def _category(value: Any) -> _First:
    """Return a category; byte 255 says that some characters beyond ASCII are in it."""
    if value in _CATEGORIES:
        return _CATEGORIES[value] | {_END - 1}
    return frozenset(range(_END)) - _CATEGORIES[_NEGATED[value]] - {_END - 1}


def _captures(items: Sequence[Any]) -> bool:
    """Say whether a group among the items, at any depth, is kept."""
    for op, argument in items:
        if op is _constants.SUBPATTERN and (argument[0] is not None or _captures(argument[3])):
            return True
        if op in _REPEATS and _captures(argument[2]):
            return True
        if op is _constants.BRANCH and any(_captures(part) for part in argument[1]):
            return True
    return False
