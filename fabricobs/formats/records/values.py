"""What a cell of CSV or a value of JSON becomes in the column it fills."""

import json
from datetime import tzinfo
from math import isfinite
from typing import Any

from fabricobs.formats.mapping import Target
from fabricobs.formats.values import (
    VALUE_TYPES,
    Unfit,
    Value,
    beyond_64_bits,
    parse_number,
    parse_whole,
    time_of,
)

_TEXT = VALUE_TYPES["text"].parse


def from_text(text: str, target: Target, zone: tzinfo) -> Value:
    """Return what a cell of text becomes; None where it is empty or cannot be meant."""
    stripped = text.strip()
    if not stripped:
        return None
    if target.column.type == "TIMESTAMP":
        return _time(stripped, zone)
    if target.parse is _TEXT:
        return stripped
    try:
        return target.convert(stripped)
    except ValueError:
        return None


def from_json(value: Any, target: Target, zone: tzinfo) -> Value:
    """Return what a value becomes; ValueError or TypeError if it cannot be meant."""
    if value is None:
        return None
    match target.column.type:
        case "TIMESTAMP":
            return _time(_as_text(value), zone)
        case "VARCHAR":
            return _as_text(value).strip() or None
        case "BOOLEAN":
            return bool(value)
        case "DOUBLE":
            number = _number(value)
            factor = 1.0 if target.factor is None else target.factor
            return number * factor if isinstance(number, float) else number
        case _ if target.factor is None and (isinstance(value, int) or _is_whole(value)):
            return parse_whole(str(value))
        case _:
            number = _number(value)
            if not isinstance(number, float):
                return number
            number *= 1.0 if target.factor is None else target.factor
            return parse_whole(str(int(number))) if isfinite(number) else beyond_64_bits(str(value))


def _is_whole(value: Any) -> bool:
    return isinstance(value, str) and value.removeprefix("-").isdecimal()


def _number(value: Any) -> float | Unfit | None:
    """Return a number of JSON, or a text that is one, as a float."""
    if isinstance(value, str):
        return parse_number(value)
    try:
        return float(value)
    except OverflowError:
        return Unfit(str(value), "does not fit a double")


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    # An escaped half of a surrogate pair is no text that can be stored.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _time(text: str, zone: tzinfo) -> int | Unfit | None:
    try:
        return time_of(text, zone)
    except ValueError:
        return None
