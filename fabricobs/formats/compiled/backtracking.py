"""Running the programs of expressions on bytes, with the choices of Python's `re` in its order."""

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.compiled.bytesearch import Bytes, compiled, find, holds, inlined, to_gap
from fabricobs.formats.compiled.expressions import (
    ANYTHING,
    ENDS,
    EVERYTHING,
    MAYBE,
    NO,
    UNBROKEN,
    YES,
    Expressions,
    Op,
)
from fabricobs.formats.compiled.numerals import FAILED, UNSURE

_LITERAL, _WORDS, _ALL, _MOST, _LEAST, _SAVE, _SPLIT, _BEGIN, _END, _BORDER, _FITS = (
    int(op) for op in Op
)
_BLANK = 32
_BEYOND = 128
# What an expression may take to decide on a line; the reference has its own limits.
_MOST_STEPS = 100_000

Numbers = NDArray[np.int64]


@inlined
def _words(data: Bytes, at: int, stop: int, texts: Bytes, start: int, length: int) -> int:
    """Return where the text that begins at `at` ends, FAILED if it does not stand there."""
    if at + length <= stop and holds(data, at, texts, start, length):
        at += length
        if data[at - 1] == _BLANK:
            while at < stop and data[at] == _BLANK:
                at += 1
        return at
    return _spread(data, at, stop, texts, start, length)


@compiled
def _spread(data: Bytes, at: int, stop: int, texts: Bytes, start: int, length: int) -> int:
    """Compare byte by byte: a blank of the text stands for one or more."""
    for i in range(start, start + length):
        if at >= stop or data[at] != texts[i]:
            return FAILED
        at += 1
        if texts[i] == _BLANK:
            while at < stop and data[at] == _BLANK:
                at += 1
    return at


@inlined
def _next_end(
    data: Bytes, at: int, last: int, stop: int, expressions: Expressions, pc: int, least: int
) -> int:
    """Return the first place from `at` on where LEAST may end; FAILED or UNSURE if there is none.

    `least` more bytes must be taken before.
    """
    code, classes = expressions.code, expressions.classes
    members = code[pc, 1] * 256
    start, length = code[pc, 5], code[pc, 6]
    if code[pc, 2] >= EVERYTHING and length > 0:
        at = find(data, at + least, stop, expressions.texts, start, length)
        return at if 0 <= at <= last else FAILED
    while True:
        if least <= 0 and (
            length == 0
            or (
                at + length <= stop
                and data[at] == expressions.texts[start]
                and holds(data, at, expressions.texts, start, length)
            )
        ):
            return at
        if at >= last:
            return FAILED
        member = classes[members + data[at]]
        if member != YES:
            return UNSURE if member == MAYBE else FAILED
        at += 1
        least -= 1


@inlined
def _border(data: Bytes, at: int, begin: int, stop: int) -> int:
    """Say whether a word begins or ends here: 0, or FAILED or UNSURE."""
    inside = 0
    for place in (at - 1, at):
        if begin <= place < stop:
            byte = data[place]
            if byte >= _BEYOND:
                return UNSURE
            letter = 97 <= (byte | 32) <= 122
            if letter or 48 <= byte <= 57 or byte == 95:
                inside += 1
    return 0 if inside == 1 else FAILED


@compiled
def take(
    data: Bytes,
    begin: int,
    at: int,
    stop: int,
    expressions: Expressions,
    which: int,
    groups: Numbers,
    stack: Numbers,
) -> int:
    """Return where the expression ends that begins at `at`, FAILED or UNSURE.

    The text is `data[begin:stop]`; `groups` gets begin and end of each group.
    """
    code, texts, classes = expressions.code, expressions.texts, expressions.classes
    pc = int(expressions.starts[which])
    depth = 0
    deepest = len(stack) - 1
    for _ in range(_MOST_STEPS):
        op = code[pc, 0]
        fits = True
        if op == _WORDS:
            at = _words(data, at, stop, texts, code[pc, 5], code[pc, 6])
            fits = at >= 0
        elif op == _SAVE:
            groups[code[pc, 1]] = at
        elif op in (_ALL, _MOST):
            least, most = code[pc, 2], code[pc, 3]
            last = min(stop, at + most)
            to = at
            if code[pc, 6] == ANYTHING:
                to = last
            else:
                if code[pc, 6] == UNBROKEN:
                    to = to_gap(data, at, last)
                members = code[pc, 1] * 256
                while to < last:
                    member = classes[members + data[to]]
                    if member != YES:
                        if member == MAYBE:
                            return UNSURE
                        break
                    to += 1
            fits = to - at >= least
            if fits and op == _MOST and to - at > least:
                if depth >= deepest:
                    return UNSURE
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = pc, at + least, to
                depth += 1
            places = code[pc, 5]
            if places % ENDS > 0:
                groups[places % ENDS - 1] = at
            if places >= ENDS:
                groups[places // ENDS - 1] = to
            at = to
        elif op == _LEAST:
            last = min(stop, at + code[pc, 3])
            at = _next_end(data, at, last, stop, expressions, pc, code[pc, 2] & (EVERYTHING - 1))
            if at == UNSURE:
                return UNSURE
            fits = at >= 0
            if fits:
                if depth >= deepest:
                    return UNSURE
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = pc, at, last
                depth += 1
        elif op == _LITERAL:
            length = code[pc, 6]
            fits = at + length <= stop and holds(data, at, texts, code[pc, 5], length)
            at += length
        elif op == _FITS:
            return at
        elif op == _END:
            fits = at == stop
        elif op == _SPLIT:
            if depth >= deepest:
                return UNSURE
            stack[depth, 0], stack[depth, 1] = pc, at
            depth += 1
        elif op == _BEGIN:
            fits = at == begin
        else:
            border = _border(data, at, begin, stop)
            if border == UNSURE:
                return UNSURE
            fits = border == 0
        if fits:
            pc = int(code[pc, 4])
            continue
        while True:
            if depth == 0:
                return FAILED
            depth -= 1
            pc = int(stack[depth, 0])
            at = int(stack[depth, 1])
            op = code[pc, 0]
            if op == _SPLIT:
                pc = int(code[pc, 1])
                break
            if op == _MOST:
                least_end, at = at, int(stack[depth, 2]) - 1
                if at > least_end:
                    stack[depth, 2] = at
                    depth += 1
                pc = int(code[pc, 4])
                break
            last = int(stack[depth, 2])
            at = _next_end(data, at, last, stop, expressions, pc, 1)
            if at == UNSURE:
                return UNSURE
            if at >= 0:
                stack[depth, 1] = at
                depth += 1
                pc = int(code[pc, 4])
                break
    return UNSURE


@compiled
def search(
    data: Bytes,
    begin: int,
    at: int,
    stop: int,
    expressions: Expressions,
    which: int,
    groups: Numbers,
    stack: Numbers,
) -> int:
    """Return where the first place from `at` on ends that is taken, FAILED or UNSURE."""
    classes = expressions.classes
    text, length = expressions.needles[which, 0], expressions.needles[which, 1]
    members = expressions.firsts[which] * 256
    while at <= stop:
        if length > 0:
            at = find(data, at, stop, expressions.texts, text, length)
            if at < 0:
                return FAILED
        elif members >= 0:
            while at < stop and classes[members + data[at]] == NO:
                at += 1
            if at >= stop:
                return FAILED
        end = take(data, begin, at, stop, expressions, which, groups, stack)
        if end != FAILED:
            return end
        at += 1
    return FAILED
