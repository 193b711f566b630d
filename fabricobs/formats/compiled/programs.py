"""Line templates as programs: tables of small instructions that a compiled matcher runs on bytes.

A program must never disagree with the regular expression of its template. It has no backtracking,
so only templates it can follow without a choice are compiled; where a line asks for one after all,
or for anything beyond plain ASCII, the matcher passes the line to the expressions.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.source import MARGIN
from fabricobs.formats.templates import Template, pieces_of
from fabricobs.formats.values import VALUE_TYPES


class Op(IntEnum):
    """Instructions: (op, a, b). Values go to field slot `a`; a slot of -1 drops them."""

    LITERAL = 0  # the bytes texts[a : a + b], a blank for one or more
    WHOLE = 1  # -?digits
    HEX = 2  # 0x, if given, and hexadecimal digits
    NUMBER = 3  # a decimal number
    WORD = 4  # no blank; up to a blank, the end or the first place the next literal fits
    TEXT = 5  # anything, up to the end or the first place the next literal fits
    CLASS = 6  # one or more bytes of class `b`
    END = 7  # blanks and the end of the line
    OPEN = 8  # the end of the line, or a blank and anything


# What a literal after a field must not begin with: the field could have gone on.
_TAKEN = {
    Op.WHOLE: "0123456789",
    Op.HEX: "0123456789abcdefABCDEFx",
    Op.NUMBER: "0123456789.eE+-",
}
_BLANK = 32
# Multiplying by it spreads bytes over 64 bits: 2^64 divided by the golden ratio (Knuth).
HASHING = 0x9E3779B97F4A7C15
_ONE_CLASS = re.compile(r"\[[^\]]*(?:\\\][^\]]*)*\]\+|\\[wS]\+")
_OPS = {"word": Op.WORD, "text": Op.TEXT, "int": Op.WHOLE, "hex": Op.HEX, "number": Op.NUMBER}
NUMERIC = frozenset({"int", "hex", "number"})


# What becomes of a line that fits a template.
ROW, IGNORED, LEFT = 0, 1, -1


class Programs(NamedTuple):
    """All templates of a format, flat: `code[starts[i] : starts[i + 1]]` is template `i`.

    A template no program can follow is the one instruction LITERAL, which is looked for anywhere.
    `words[i] : words[i + 1]` in `texts` are the first words with a list of candidates of their own,
    `candidates[lists[i + 1] : lists[i + 2]]`; list 0 is for every other word.
    """

    code: NDArray[np.int32]  # instructions x 3
    starts: NDArray[np.int32]
    followed: NDArray[np.uint8]  # by a program, not by its literal alone
    outcomes: NDArray[np.int32]
    texts_of: NDArray[np.int64]  # bit `i`: field `i` of the template is a text
    texts: NDArray[np.uint8]
    classes: NDArray[np.uint8]  # classes x 256, flat
    words: NDArray[np.int32]
    word_table: NDArray[np.int32]  # hash table of words, -1 where empty
    candidates: NDArray[np.int32]
    lists: NDArray[np.int32]
    mark: NDArray[np.uint8]


def compile_programs(templates: Sequence[Template], outcomes: Sequence[int], mark: str) -> Programs:
    """Compile templates in the order in which they are tried."""
    code: list[tuple[int, int, int]] = []
    starts = [0]
    followed: list[bool] = []
    texts = bytearray()
    classes: list[bytes] = []
    for template in templates:
        program = _program(template, texts, classes)
        followed.append(program is not None)
        code.extend(program or [(Op.LITERAL, len(texts), len(template.literal.encode()))])
        texts.extend(template.literal.encode())
        starts.append(len(code))
    first_words = sorted({t.first_word for t in templates if t.first_word is not None})
    lists = [[i for i, t in enumerate(templates) if t.first_word is None]]
    words = [len(texts)]
    for word in first_words:
        lists.append([i for i, t in enumerate(templates) if t.first_word in {None, word}])
        texts.extend(word.encode())
        words.append(len(texts))
    return Programs(
        code=np.array(code, np.int32).reshape(-1, 3),
        starts=np.array(starts, np.int32),
        followed=np.array(followed, np.uint8),
        outcomes=np.array(outcomes, np.int32),
        texts_of=np.array([_texts_of(template) for template in templates], np.int64),
        texts=np.frombuffer(bytes(texts) + bytes(MARGIN), np.uint8),
        classes=np.frombuffer(b"".join(classes) or bytes(256), np.uint8),
        words=np.array(words, np.int32),
        word_table=_word_table([word.encode() for word in first_words]),
        candidates=np.array([i for part in lists for i in part], np.int32),
        lists=np.cumsum([0, *map(len, lists)]).astype(np.int32),
        mark=np.frombuffer(mark.encode() + bytes(MARGIN), np.uint8)[: len(mark.encode())],
    )


def _texts_of(template: Template) -> int:
    return sum(1 << slot for slot, (_, kind) in enumerate(template.fields) if kind not in NUMERIC)


def _word_table(words: Sequence[bytes]) -> NDArray[np.int32]:
    """Return the hash table the matcher looks words up in: by their first eight bytes."""
    size = 1 << (4 * len(words)).bit_length()
    table = np.full(size, -1, np.int32)
    for number, word in enumerate(words):
        key = int.from_bytes(word[:8].rjust(8, b"\0"), "little") + len(word)
        place = (key * HASHING % (1 << 64) >> 40) & (size - 1)
        while table[place] >= 0:
            place = (place + 1) & (size - 1)
        table[place] = number
    return table


def _program(
    template: Template, texts: bytearray, classes: list[bytes]
) -> list[tuple[int, int, int]] | None:
    """Return the template's instructions, None if it needs a choice."""
    code: list[tuple[int, int, int]] = []
    slot = 0
    for literal, type_name, name in pieces_of(template.source):
        if literal is not None:
            if not literal.isascii():
                return None
            text = re.sub(" +", " ", literal).encode()
            code.append((Op.LITERAL, len(texts), len(text)))
            texts.extend(text)
            continue
        place = slot if name else -1
        slot += bool(name)
        members = _class_of(type_name)
        if type_name in _OPS:
            code.append((_OPS[type_name], place, 0))
        elif members is not None:
            if members not in classes:
                classes.append(members)
            code.append((Op.CLASS, place, classes.index(members)))
        else:
            return None
    code.append((Op.OPEN if template.open_ended else Op.END, 0, 0))
    return code if _without_choice(code, texts, classes) else None


@cache
def _class_of(type_name: str) -> bytes | None:
    """Return, for a type that is one or more of some characters, which of 256 bytes those are."""
    pattern = VALUE_TYPES[type_name].pattern
    if not _ONE_CLASS.fullmatch(pattern):
        return None
    one = re.compile(pattern)
    members = bytes(code < 127 and one.fullmatch(chr(code)) is not None for code in range(256))
    # A blank in it could hide a second message.
    return None if members[_BLANK] else members


def _without_choice(
    code: Sequence[tuple[int, int, int]], texts: bytearray, classes: Sequence[bytes]
) -> bool:
    """Say whether the instruction after each field can only begin where the field ends."""
    for (op, _, which), (after, start, _) in zip(code, code[1:], strict=False):
        first = chr(texts[start]) if after == Op.LITERAL else ""
        if op in {Op.LITERAL, Op.END, Op.OPEN}:
            continue
        if after not in {Op.LITERAL, Op.END, Op.OPEN}:
            return False
        if op == Op.TEXT and (after == Op.OPEN or first == " "):
            return False
        if first and op == Op.CLASS and classes[which][ord(first)]:
            return False
        if first and first in _TAKEN.get(Op(op), ""):
            return False
    return True
