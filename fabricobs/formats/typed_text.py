"""Which parts of a line are values, and of which type: for who begins a definition."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fabricobs.formats.identity.vocabulary import INTERFACE, is_surely_a_device
from fabricobs.formats.values import TIME_PATTERN, VALUE_TYPES
from fabricobs.formats.values.times import SHORT_TIME_PATTERN, US_TIME_PATTERN

_HOST = re.compile(r"[A-Za-z][A-Za-z0-9.-]*\d[A-Za-z0-9.-]*")
_SWITCH_PORTS = (
    r"(?:Ethernet|Eth|Et|PortChannel|[Pp]ort-[Cc]hannel|Po|HundredGigE|FourHundredGigE|Vlan)"
    r"\d[\d/.:]*\d|(?:Ethernet|Eth|Et|PortChannel|[Pp]ort-[Cc]hannel|Po|Vlan)\d"
)
_DECIMAL = r"[-+]?(?:\d+\.\d+(?:[eE][-+]?\d+)?|\.\d+|\d+[eE][-+]?\d+|nan|inf)"
_THOUSANDS = r"\d{1,3}(?:,\d{3})+"
# The first that fits up to the end of a word is meant; a name may hold any of those above it.
_KINDS: tuple[tuple[str, str], ...] = (
    ("time", TIME_PATTERN),
    ("short_time", SHORT_TIME_PATTERN),
    ("us_time", US_TIME_PATTERN),
    ("device", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),  # a UUID
    ("pci", VALUE_TYPES["pci"].pattern),
    ("address", r"(?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5,}"),
    ("clock", VALUE_TYPES["clock"].pattern),
    ("hex", r"0x[0-9a-fA-F]{1,16}"),
    ("rdma_port", r"mlx[45]_\d+/\d+"),
    ("switch_port", _SWITCH_PORTS),
    ("device", INTERFACE.pattern),
    ("size", r"\d+(?:\.\d+)? ?[KMGT]?i?B"),
    ("timed", r"\d+(?:\.\d+)? ?(?:ns|us|ms|seconds|sec|s)"),
    ("percent", r"\d+(?:\.\d+)?%"),
    ("amount", rf"{_THOUSANDS}\.\d+"),
    ("count", _THOUSANDS),
    ("number", _DECIMAL),
    ("int", r"-?\d+"),
    ("hex", r"(?=[0-9a-f]{0,15}\d)(?=[0-9a-f]{0,15}[a-f])[0-9a-f]{6,16}"),
    ("device", r"[A-Za-z0-9_][\w.-]*\d[\w.-]*\w|[A-Za-z_][\w.-]*\d"),
)
# A number ends where no more digits follow; a name may stand before `:1`.
_NAMES = frozenset({"address", "device", "rdma_port", "switch_port"})
_VALUES = tuple(
    (kind, re.compile(rf"(?:{pattern})(?![A-Za-z0-9_]{'' if kind in _NAMES else '|[.,:][0-9]'})"))
    for kind, pattern in _KINDS
)
_QUOTED = re.compile(r'"([^"]*)"')
_PLAIN = re.compile(r"[A-Za-z0-9_]+|[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a line: a value of a type, or text where the type is empty."""

    text: str
    kind: str = ""


def pieces_in(line: str) -> list[Piece]:
    """Cut a line into values and the text between them."""
    pieces: list[Piece] = []
    for piece in _scan(line):
        if pieces and not piece.kind and not pieces[-1].kind:
            pieces[-1] = Piece(pieces[-1].text + piece.text)
        else:
            pieces.append(piece)
    return pieces


def kind_of(text: str) -> str:
    """Return the type of a whole text, `text` where it is none of the others."""
    pieces = pieces_in(text.strip())
    return pieces[0].kind or "text" if len(pieces) == 1 else "text"


def _scan(line: str) -> Iterator[Piece]:
    at = 0
    while at < len(line):
        quoted = _QUOTED.match(line, at)
        if quoted is not None and quoted[1]:
            yield from (Piece('"'), Piece(quoted[1], "quoted"), Piece('"'))
            at = quoted.end()
            continue
        value = _value_at(line, at)
        if value is None:
            found = _PLAIN.match(line, at)
            assert found is not None  # any character fits
            value = Piece(found[0])
        yield value
        at += len(value.text)


def _value_at(line: str, at: int) -> Piece | None:
    before = line[at - 1] if at else " "
    if before.isalnum() or before == "_":
        return None
    for kind, pattern in _VALUES:
        found = pattern.match(line, at)
        if found is not None:
            text = found[0]
            return Piece(text, "host" if kind == "device" and _is_host(text) else kind)
    return None


def _is_host(text: str) -> bool:
    return bool(_HOST.fullmatch(text)) and is_surely_a_device(text)
