"""What a cell of a record becomes in the column it fills, whichever reader found it.

CSV gives texts, JSON and Parquet also give numbers, truth values and structures. A cell that its
column cannot hold becomes an `Unfit`, which costs this cell alone and is told in the account of the
file. Nothing is cut to fit: a fraction is no whole number, unless a factor of the definition
converts its unit, which rounds.
"""

import json
import re
from contextlib import suppress
from datetime import tzinfo
from typing import Any

from fabricobs.formats.mapping import Target
from fabricobs.formats.values import MISFITS, Unfit, Value, time_of

_WITH_POINT = re.compile(r"([-+]?\d+)\.0*")


def from_text(text: str, target: Target, zone: tzinfo) -> Value:
    """Return what a text becomes; None where it says nothing."""
    stripped = text.strip()
    if not stripped:
        return None
    try:
        if target.column.type == "TIMESTAMP" and target.is_plain:
            return time_of(stripped, zone)
        return target.convert(stripped)
    except ValueError:
        return _unusual(stripped, target)


def _unusual(text: str, target: Target) -> Value:
    """Return what a text becomes that its type cannot mean, such as 40.0 for a whole number."""
    if target.is_plain and target.column.type == "BIGINT":
        exact = _WITH_POINT.fullmatch(text)
        with suppress(ValueError):
            return target.convert(exact[1]) if exact else target.convert_number(float(text), text)
    return Unfit(text, MISFITS[target.column.type])


def from_json(value: Any, target: Target, zone: tzinfo) -> Value:
    """Return what a value of JSON or Parquet becomes; None where it says nothing."""
    kind = target.column.type
    if value is None:
        return None
    if isinstance(value, str):
        # Half of a surrogate pair, as JSON may hold, is no text that can be stored.
        plain = value if value.isascii() else value.encode("utf-8", "replace").decode()
        return from_text(plain, target, zone)
    if not isinstance(value, bool | int | float | dict | list):  # as SQLite and pickles may hold
        return Unfit(f"a value of {type(value).__name__}", MISFITS[kind])
    if kind == "VARCHAR":
        return from_text(json.dumps(value), target, zone)
    if isinstance(value, dict | list):
        return Unfit("an object" if isinstance(value, dict) else "a list", MISFITS[kind])
    if kind == "TIMESTAMP":
        if value != value:  # NaN
            return None
        return from_text(json.dumps(value), target, zone)
    if kind == "BOOLEAN" and value in (0, 1):
        return bool(value)
    if isinstance(value, bool) or kind == "BOOLEAN":
        return Unfit(json.dumps(value), MISFITS[kind])
    if target.is_plain:
        return target.convert_number(value, str(value))
    return from_text(str(value), target, zone)
