"""What a cell of CSV or a value of JSON becomes in the column it fills."""

import json
from datetime import tzinfo
from typing import Any

from fabricobs.formats.mapping import Target
from fabricobs.formats.values import VALUE_TYPES, Value, parse_time, parse_whole

_TEXT = VALUE_TYPES["text"].parse
_LIMIT = 1 << 63


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
        return _bounded(target.convert(stripped))
    except (ValueError, OverflowError):
        return None


def from_json(value: Any, target: Target, zone: tzinfo) -> Value:
    """Return what a value becomes; ValueError, TypeError or OverflowError if it cannot be meant."""
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
            return float(value) * (1.0 if target.factor is None else target.factor)
        case _ if target.factor is not None:
            return _bounded(int(float(value) * target.factor))
        case _:
            return parse_whole(str(value if isinstance(value, int) else int(float(value))))


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    # An escaped half of a surrogate pair is no text that can be stored.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _time(text: str, zone: tzinfo) -> int | None:
    try:
        return parse_time(text, zone)
    except ValueError:
        return None


def _bounded(value: Value) -> Value:
    """Return a whole number that 64 bits hold, None for a greater one."""
    if type(value) is int and not -_LIMIT <= value < _LIMIT:
        return None
    return value
