"""Learning the shape of JSON lines: what stands between the values, from a line that is read."""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_BLANKS = re.compile(rb"[ \t\r]*")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(rb"[^,\]} \t\r]+")
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Shape:
    """The text before each value and after the last, the slots of the values, the objects."""

    literals: tuple[bytes, ...]
    slots: tuple[int | None, ...]
    objects: frozenset[str]


class _NoShapeError(Exception):
    """A line that others will not look like, or whose paths are not plain."""


def learn(line: bytes, slots: Mapping[str, int], objects: Set[str]) -> Shape | None:
    """Return the shape of a line that holds valid JSON; None for one of no use.

    `slots` are the paths wanted, `objects` the paths above them, where nothing but an object will
    do.
    """
    walk = _Walk(line.rstrip(b" \t\r"), slots, objects)
    try:
        walk.object("", 0)
    except _NoShapeError:
        return None
    return Shape(
        (*walk.literals, walk.line[walk.done :]), tuple(walk.found), frozenset(walk.entered)
    )


@dataclass(slots=True)
class _Walk:
    line: bytes
    slots: Mapping[str, int]
    objects: Set[str]
    at: int = 0
    done: int = 0  # where the last value ended
    literals: list[bytes] = field(default_factory=list)
    found: list[int | None] = field(default_factory=list)
    entered: set[str] = field(default_factory=set)

    def object(self, prefix: str, depth: int) -> None:
        if depth > _DEEPEST:
            raise _NoShapeError
        keys: set[str] = set()
        self._take(b"{")
        while not self._next_is(b"}"):
            if keys:
                self._take(b",")
            key = self._key()
            if key in keys:
                raise _NoShapeError  # of equal keys the last counts
            keys.add(key)
            self._take(b":")
            self._value(prefix + key, "." in key, depth)
        self._take(b"}")

    def _value(self, path: str, dotted: bool, depth: int) -> None:
        self._skip(_BLANKS)
        opens = self.line[self.at : self.at + 1]
        if opens == b"{":
            if dotted or path in self.slots:
                raise _NoShapeError
            self.entered.add(path)
            self.object(f"{path}.", depth + 1)
            return
        if path in self.objects:
            raise _NoShapeError
        self.literals.append(self.line[self.done : self.at])
        self.found.append(None if dotted else self.slots.get(path))
        if opens == b"[":
            self._skip_list()
        else:
            self._skip(_STRING if opens == b'"' else _SCALAR)
        self.done = self.at

    def _key(self) -> str:
        self._skip(_BLANKS)
        begin = self.at
        self._skip(_STRING)
        key = self.line[begin + 1 : self.at - 1]
        if b"\\" in key:
            raise _NoShapeError
        try:
            return key.decode()
        except UnicodeDecodeError:
            raise _NoShapeError from None

    def _skip_list(self) -> None:
        depth = 0
        for found in _BRACKETS.finditer(self.line, self.at):
            if found[0] in b"[{":
                depth += 1
            elif found[0] in b"]}":
                depth -= 1
                if depth == 0:
                    self.at = found.end()
                    return
        raise _NoShapeError

    def _next_is(self, text: bytes) -> bool:
        self._skip(_BLANKS)
        return self.line.startswith(text, self.at)

    def _take(self, text: bytes) -> None:
        if not self._next_is(text):
            raise _NoShapeError
        self.at += len(text)

    def _skip(self, pattern: re.Pattern[bytes]) -> None:
        found = pattern.match(self.line, self.at)
        if found is None:
            raise _NoShapeError
        self.at = found.end()


@dataclass(frozen=True, slots=True)
class Shapes:
    """Shapes as the compiled reader wants them."""

    texts: NDArray[np.uint8]
    literals: NDArray[np.int64]
    slots: NDArray[np.int64]
    starts: NDArray[np.int64]


def compile_shapes(shapes: list[Shape], passed: int, end: int) -> Shapes:
    """Lay shapes out in arrays; `passed` and `end` stand for no slot, and for a line's end."""
    literals = [literal for shape in shapes for literal in shape.literals]
    slots = [
        number
        for shape in shapes
        for number in (*(passed if slot is None else slot for slot in shape.slots), end)
    ]
    return Shapes(
        np.frombuffer(b"".join(literals), np.uint8),
        np.cumsum([0, *map(len, literals)]),
        np.array(slots, np.int64),
        np.cumsum([0, *(len(shape.literals) for shape in shapes)]),
    )
