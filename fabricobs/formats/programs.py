"""Line templates as programs: tables of small instructions that a compiled matcher runs on bytes.

A program must never disagree with the regular expression of its template. It has no backtracking,
so only templates it can follow without a choice are compiled; where a line asks for one after all,
or for anything beyond plain ASCII, the matcher passes the line to the expressions.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.templates import Template, pieces_of


class Op(IntEnum):
    """Instructions: (op, a, b). Values go to field slot `a`; a slot of -1 drops them."""

    LITERAL = 0  # the bytes texts[a : a + b], a blank for one or more
    WHOLE = 1  # -?digits
    HEX = 2  # 0x, if given, and hexadecimal digits
    NUMBER = 3  # a decimal number
    WORD = 4  # no blank; up to a blank, the end or the first place the next literal fits
    TEXT = 5  # anything, up to the end or the first place the next literal fits
    END = 6  # blanks and the end of the line
    OPEN = 7  # the end of the line, or a blank and anything


# What a literal after a field must not begin with: the field could have gone on.
_TAKEN = {
    Op.WHOLE: "0123456789",
    Op.HEX: "0123456789abcdefABCDEFx",
    Op.NUMBER: "0123456789.eE+-",
}
_OPS = {"word": Op.WORD, "text": Op.TEXT, "int": Op.WHOLE, "hex": Op.HEX, "number": Op.NUMBER}


@dataclass(frozen=True, slots=True)
class Programs:
    """All templates of a format, flat: `code[starts[i] : starts[i + 1]]` is template `i`.

    A template no program can follow is the one instruction LITERAL, which is looked for anywhere.
    `usable` says whether a match gives a row here; a line that fits another template goes to the
    expressions. `words[i] : words[i + 1]` in `texts` are the first words with a list of candidates
    of their own, `candidates[lists[i + 1] : lists[i + 2]]`; list 0 is for every other word.
    """

    code: NDArray[np.int32]  # instructions x 3
    starts: NDArray[np.int32]
    followed: NDArray[np.bool_]  # by a program, not by its literal alone
    usable: NDArray[np.bool_]
    texts: NDArray[np.uint8]
    words: NDArray[np.int32]
    candidates: NDArray[np.int32]
    lists: NDArray[np.int32]
    slots: int


def compile_programs(templates: Sequence[Template], usable: Sequence[bool]) -> Programs:
    """Compile templates in the order in which they are tried."""
    code: list[tuple[int, int, int]] = []
    starts = [0]
    followed: list[bool] = []
    texts = bytearray()
    for template in templates:
        program = _program(template, texts)
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
        followed=np.array(followed, np.bool_),
        usable=np.array(usable, np.bool_) & followed,
        texts=np.frombuffer(bytes(texts) + bytes(8), np.uint8),
        words=np.array(words, np.int32),
        candidates=np.array([i for part in lists for i in part], np.int32),
        lists=np.cumsum([0, *map(len, lists)]).astype(np.int32),
        slots=max((len(template.fields) for template in templates), default=0),
    )


def _program(template: Template, texts: bytearray) -> list[tuple[int, int, int]] | None:
    """Return the template's instructions, None if it needs a choice."""
    code: list[tuple[int, int, int]] = []
    slot = 0
    for literal, type_name, named in pieces_of(template.source):
        if literal is not None:
            if not literal.isascii():
                return None
            text = re.sub(" +", " ", literal).encode()
            code.append((Op.LITERAL, len(texts), len(text)))
            texts.extend(text)
        elif type_name not in _OPS:
            return None
        else:
            code.append((_OPS[type_name], slot if named else -1, 0))
            slot += named
    code.append((Op.OPEN if template.open_ended else Op.END, 0, 0))
    return code if _without_choice(code, texts) else None


def _without_choice(code: Sequence[tuple[int, int, int]], texts: bytearray) -> bool:
    """Say whether the instruction after each field can only begin where the field ends."""
    for (op, _, _), (after, start, _) in zip(code, code[1:], strict=False):
        first = chr(texts[start]) if after == Op.LITERAL else ""
        if op in {Op.LITERAL, Op.END, Op.OPEN}:
            continue
        if after not in {Op.LITERAL, Op.END, Op.OPEN}:
            return False
        if op == Op.TEXT and (after == Op.OPEN or first == " "):
            return False
        if first and first in _TAKEN.get(Op(op), ""):
            return False
    return True
