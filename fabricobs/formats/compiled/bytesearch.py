"""Looking for bytes many at a time, for the compiled matcher.

Every text is followed by at least `MARGIN` bytes that may be read and mean nothing, so that no
function asks where its array ends.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
_Function = TypeVar("_Function", bound=Callable[..., Any])

STRIDE = 32
_BLANK = np.uint8(32)
_NEWLINE, _RETURN, _SPACE = 10, 13, 32
_EIGHT = 8


class _Compiler(Protocol):
    def __call__(self, function: _Function) -> _Function: ...


# Nothing here counts references or raises errors of Python.
compiled = cast(_Compiler, njit(error_model="numpy", _nrt=False))  # type: ignore[call-overload]
# Inlined at every call: an array handed over costs more than what most of these do with it.
inlined = cast(_Compiler, njit(error_model="numpy", forceinline=True, _nrt=False))  # type: ignore[call-overload]


def _load_type(typing_context: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature, arguments)
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


def _equal_type(typing_context: Any, data: Any, at: Any, byte: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        some = _some(builder, _place(context, builder, signature, arguments))
        wanted = _everywhere(builder, arguments[2])
        return _mask(builder, builder.icmp_unsigned("==", some, wanted))

    return types.uint64(data, types.int64, types.uint8), generate


def _control_type(typing_context: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        some = _some(builder, _place(context, builder, signature, arguments))
        first = ir.Constant(some.type, [_SPACE] * STRIDE)
        return _mask(builder, builder.icmp_unsigned("<", some, first))

    return types.uint64(data, types.int64), generate


def _gap_type(typing_context: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        some = _some(builder, _place(context, builder, signature, arguments))
        blank = ir.Constant(some.type, [_SPACE] * STRIDE)
        return _mask(builder, builder.icmp_signed("<=", some, blank))

    return types.uint64(data, types.int64), generate


def _address_type(typing_context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


def _trailing_zeros_type(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.int64(types.uint64), generate


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


def _some(builder: Any, place: Any) -> Any:
    kind = ir.VectorType(ir.IntType(8), STRIDE)
    return builder.load(builder.bitcast(place, kind.as_pointer()), align=1)


def _everywhere(builder: Any, byte: Any) -> Any:
    """Return a vector of one byte repeated."""
    kind = ir.VectorType(ir.IntType(8), STRIDE)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), byte, ir.IntType(32)(0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), STRIDE), [0] * STRIDE)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), places)


def _mask(builder: Any, flags: Any) -> Any:
    """Return bit `i` set where flag `i` is."""
    return builder.zext(builder.bitcast(flags, ir.IntType(STRIDE)), ir.IntType(64))


# The eight bytes at a place, whatever their alignment.
load = cast(Callable[[Bytes, int], np.uint64], intrinsic(_load_type))
# Bit `i` says whether byte `at + i` of the next 32 is the one looked for.
equal = cast(Callable[[Bytes, int, np.uint8], np.uint64], intrinsic(_equal_type))
# Bit `i` says whether byte `at + i` of the next 32 is a control character.
control = cast(Callable[[Bytes, int], np.uint64], intrinsic(_control_type))
# Bit `i` says whether byte `at + i` of the next 32 is a blank, control character or beyond ASCII.
gap = cast(Callable[[Bytes, int], np.uint64], intrinsic(_gap_type))
# The pointer that a number is.
address = cast(Callable[[int], Any], intrinsic(_address_type))
trailing_zeros = cast(Callable[[np.uint64], int], intrinsic(_trailing_zeros_type))


@inlined
def find_byte(data: Bytes, at: int, stop: int, byte: np.uint8) -> int:
    """Return where the byte first stands at or after `at`, `stop` if not before it."""
    while at < stop:
        found = equal(data, at, byte)
        if found != 0:
            return min(at + trailing_zeros(found), stop)
        at += STRIDE
    return stop


@inlined
def to_blank(data: Bytes, at: int, stop: int) -> int:
    """Return where the first blank at or after `at` stands, `stop` if not before it."""
    return find_byte(data, at, stop, _BLANK)


@inlined
def to_control(data: Bytes, at: int, stop: int) -> int:
    """Return where the first control character stands, `stop` if not before it."""
    while at < stop:
        found = control(data, at)
        if found != 0:
            return min(at + trailing_zeros(found), stop)
        at += STRIDE
    return stop


@inlined
def to_gap(data: Bytes, at: int, stop: int) -> int:
    """Return where the first blank, control character or byte beyond ASCII stands, or `stop`."""
    while at < stop:
        found = gap(data, at)
        if found != 0:
            return min(at + trailing_zeros(found), stop)
        at += STRIDE
    return stop


@inlined
def holds(data: Bytes, at: int, texts: Bytes, start: int, length: int) -> bool:
    """Say whether `length` bytes of `texts` stand at `at`."""
    while length >= _EIGHT:
        if load(data, at) != load(texts, start):
            return False
        at += _EIGHT
        start += _EIGHT
        length -= _EIGHT
    if length == 0:
        return True
    unread = np.uint64(64 - 8 * length)
    return bool((load(data, at) ^ load(texts, start)) << unread == 0)


@inlined
def find(data: Bytes, at: int, stop: int, texts: Bytes, start: int, length: int) -> int:
    """Return where the text first stands at or after `at`, -1 if not wholly before `stop`."""
    if length == 0:
        return at
    last = stop - length
    first = texts[start]
    second = min(length - 1, 1)
    while at <= last:
        found = equal(data, at, first) & equal(data, at + second, texts[start + second])
        while found != 0:
            place = at + trailing_zeros(found)
            if place > last:
                return -1
            if holds(data, place, texts, start, length):
                return place
            found &= found - np.uint64(1)
        at += STRIDE
    return -1
