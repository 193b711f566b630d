"""A pickle reader that can only build plain values: dict, list, tuple, text, bytes, numbers.

Python's unpickler imports and calls what the file names. This one has no operation that could:
every opcode that names, builds or calls an object is refused, whatever it names. A few bytes can
build a tree without end, of values that refer to each other: what is built is counted.
"""

import struct
from collections.abc import Callable
from typing import Any

from fabricobs.formats.limits import LIMITS

_MARK = object()
# A whole number of more bytes is no count, time or rank.
_LONGEST_WHOLE = 64
_CONTAINER_COUNTS = 3  # values whose memory an empty list takes
_TEXT_COUNTS = 64  # bytes of a text that take the memory of a value


class PickleError(ValueError):
    """A pickle that is broken, or asks for more than plain values."""


class _Machine:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.steps = 0

    def take(self, length: int) -> bytes:
        end = self.at + length
        if length < 0 or end > len(self.data):
            raise PickleError("ends early")
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def unpack(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def push(self, value: Any, values: int = 1) -> None:
        self.count(values)
        self.stack.append(value)

    def count(self, values: int = 1) -> None:
        self.steps += values
        if self.steps > LIMITS.dump_values:
            raise PickleError(f"more than {LIMITS.dump_values:,} values")

    def pop(self, kind: type | None = None) -> Any:
        value = self.stack.pop()
        if value is _MARK or (kind is not None and type(value) is not kind):
            raise PickleError("values out of order")
        return value

    def since_mark(self) -> list[Any]:
        for position in range(len(self.stack) - 1, -1, -1):
            if self.stack[position] is _MARK:
                values = self.stack[position + 1 :]
                del self.stack[position:]
                return values
        raise PickleError("values out of order")

    def top(self, kind: type) -> Any:
        if type(self.stack[-1]) is not kind:
            raise PickleError("values out of order")
        return self.stack[-1]

    def last(self, count: int) -> list[Any]:
        values = [self.pop() for _ in range(count)]
        return values[::-1]


def _text(machine: _Machine, layout: str) -> None:
    machine.push(machine.take(machine.unpack(layout)).decode("utf-8", "replace"))


def _bytes(machine: _Machine, layout: str) -> None:
    machine.push(machine.take(machine.unpack(layout)))


def _long(machine: _Machine, layout: str) -> None:
    length = machine.unpack(layout)
    if length > _LONGEST_WHOLE:
        raise PickleError(f"a whole number of {length} bytes")
    machine.push(int.from_bytes(machine.take(length), "little", signed=True))


def _pairs(values: list[Any]) -> dict[Any, Any]:
    if len(values) % 2:
        raise PickleError("values out of order")
    keys = values[::2]
    if not all(isinstance(key, str | bytes | int | float | None) for key in keys):
        raise PickleError("a key that is no text or number")
    return dict(zip(keys, values[1::2], strict=True))


def _fill(machine: _Machine, values: list[Any]) -> None:
    machine.top(dict).update(_pairs(values))


def _remember(machine: _Machine, key: int) -> None:
    if machine.stack[-1] is _MARK:
        raise PickleError("values out of order")
    machine.count()
    machine.memo[key] = machine.stack[-1]


_NAMED: dict[str, Callable[[_Machine], object]] = {
    "\x80": lambda m: m.take(1),  # protocol
    "\x95": lambda m: m.take(8),  # frame
    "(": lambda m: m.push(_MARK),
    "N": lambda m: m.push(None),
    "\x88": lambda m: m.push(True),
    "\x89": lambda m: m.push(False),
    "J": lambda m: m.push(m.unpack("<i")),
    "K": lambda m: m.push(m.unpack("<B")),
    "M": lambda m: m.push(m.unpack("<H")),
    "\x8a": lambda m: _long(m, "<B"),
    "\x8b": lambda m: _long(m, "<i"),
    "G": lambda m: m.push(m.unpack(">d")),
    "X": lambda m: _text(m, "<I"),
    "\x8c": lambda m: _text(m, "<B"),
    "\x8d": lambda m: _text(m, "<Q"),
    "T": lambda m: _text(m, "<i"),
    "U": lambda m: _text(m, "<B"),
    "B": lambda m: _bytes(m, "<I"),
    "C": lambda m: _bytes(m, "<B"),
    "\x8e": lambda m: _bytes(m, "<Q"),
    "]": lambda m: m.push([], _CONTAINER_COUNTS),
    "a": lambda m: (value := m.pop(), m.top(list).append(value)),
    "e": lambda m: (values := m.since_mark(), m.top(list).extend(values)),
    "l": lambda m: m.push(m.since_mark()),
    "}": lambda m: m.push({}, _CONTAINER_COUNTS),
    "s": lambda m: _fill(m, m.last(2)),
    "u": lambda m: _fill(m, m.since_mark()),
    "d": lambda m: m.push(_pairs(m.since_mark())),
    ")": lambda m: m.push(()),
    "t": lambda m: m.push(tuple(m.since_mark())),
    "\x85": lambda m: m.push(tuple(m.last(1))),
    "\x86": lambda m: m.push(tuple(m.last(2))),
    "\x87": lambda m: m.push(tuple(m.last(3))),
    "q": lambda m: _remember(m, m.unpack("<B")),
    "r": lambda m: _remember(m, m.unpack("<I")),
    "\x94": lambda m: _remember(m, len(m.memo)),
    "h": lambda m: m.push(m.memo[m.unpack("<B")]),
    "j": lambda m: m.push(m.memo[m.unpack("<I")]),
    "0": lambda m: m.pop(),
    "1": lambda m: m.since_mark(),
}
_OPERATIONS = {ord(code): run for code, run in _NAMED.items()}
_STOP = ord(".")


def read_pickle(data: bytes) -> Any:
    """Return the plain value a pickle holds; PickleError if it is anything else."""
    machine = _Machine(data)
    try:
        while (code := machine.take(1)[0]) != _STOP:
            run = _OPERATIONS.get(code)
            if run is None:
                raise PickleError(f"refused: holds more than plain values (opcode {chr(code)!r})")
            run(machine)
        value = machine.pop()
    except (IndexError, KeyError, TypeError, struct.error) as error:
        raise PickleError(f"broken: {error}") from error
    _refuse_endless(value)
    return value


def _refuse_endless(value: Any) -> None:
    """Count what the value shows to whoever walks through it: shared parts come again and again."""
    level, below = [value], 0
    shown = 0
    while level:
        below += 1
        if below > LIMITS.document_levels:
            raise PickleError(f"more than {LIMITS.document_levels} levels deep")
        inner: list[Any] = []
        for each in level:
            kind = type(each)
            if kind is list or kind is tuple:
                shown += len(each)
                inner.extend(each)
            elif kind is dict:
                shown += 2 * len(each)
                inner.extend(each)
                inner.extend(each.values())
            elif kind is str or kind is bytes:
                shown += len(each) // _TEXT_COUNTS
            if shown > LIMITS.dump_values:
                raise PickleError(f"more than {LIMITS.dump_values:,} values")
        level = inner
