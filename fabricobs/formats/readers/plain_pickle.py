"""A pickle reader that can only build plain values: dict, list, tuple, set, text, bytes, numbers.

Python's unpickler imports and calls what the file names. This one has no operation that could:
every opcode that names, builds or calls an object is refused, whatever it names.
"""

import struct
from collections.abc import Callable
from typing import Any

_MARK = object()


class PickleError(ValueError):
    """A pickle that is broken, or asks for more than plain values."""


class _Machine:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def take(self, length: int) -> bytes:
        end = self.at + length
        if length < 0 or end > len(self.data):
            raise PickleError("ends early")
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def unpack(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def push(self, value: Any) -> None:
        self.stack.append(value)

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
    machine.push(int.from_bytes(machine.take(machine.unpack(layout)), "little", signed=True))


def _pairs(values: list[Any]) -> dict[Any, Any]:
    if len(values) % 2:
        raise PickleError("values out of order")
    return dict(zip(values[::2], values[1::2], strict=True))


def _fill(machine: _Machine, values: list[Any]) -> None:
    machine.top(dict).update(_pairs(values))


def _remember(machine: _Machine, key: int) -> None:
    if machine.stack[-1] is _MARK:
        raise PickleError("values out of order")
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
    "]": lambda m: m.push([]),
    "a": lambda m: (value := m.pop(), m.top(list).append(value)),
    "e": lambda m: (values := m.since_mark(), m.top(list).extend(values)),
    "l": lambda m: m.push(m.since_mark()),
    "}": lambda m: m.push({}),
    "s": lambda m: _fill(m, m.last(2)),
    "u": lambda m: _fill(m, m.since_mark()),
    "d": lambda m: m.push(_pairs(m.since_mark())),
    ")": lambda m: m.push(()),
    "t": lambda m: m.push(tuple(m.since_mark())),
    "\x85": lambda m: m.push(tuple(m.last(1))),
    "\x86": lambda m: m.push(tuple(m.last(2))),
    "\x87": lambda m: m.push(tuple(m.last(3))),
    "\x8f": lambda m: m.push(set()),
    "\x90": lambda m: (values := m.since_mark(), m.top(set).update(values)),
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
        return machine.pop()
    except (IndexError, KeyError, TypeError, struct.error) as error:
        raise PickleError(f"broken: {error}") from error
