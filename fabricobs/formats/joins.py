"""Columns put together from named parts: headers of a dump, labels of a metric, keys of a record.

`port = "{device}/{port}"` needs both parts; of several patterns the first whose parts are all told
counts. A part may name a type, `{instance:instance}`; alone in its pattern it gives its value.
`{lid} unless {ca}` counts only where `ca` is not told.
"""

import re
from collections.abc import Mapping
from typing import Any

from fabricobs.formats.templates import TemplateError
from fabricobs.formats.values import VALUE_TYPES

_BETWEEN = re.compile(r"\{[^}]*\}")
_PART = re.compile(r"\{(\w+)(?::(\w+))?\}")


class Join:
    """The compiled patterns of a block, by column."""

    def __init__(self, patterns: Mapping[str, tuple[str, ...]]) -> None:
        self._patterns = dict(patterns)
        told = (pattern for each in patterns.values() for pattern in each)
        self.parts = frozenset(name for pattern in told for name, _ in _PART.findall(pattern))
        for pattern in (pattern for each in patterns.values() for pattern in each):
            for _, type_name in _PART.findall(pattern):
                if type_name and type_name not in VALUE_TYPES:
                    raise TemplateError(f"unknown type {type_name!r} in {pattern!r}")

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def columns(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns whose parts are all told; ValueError for one that cannot be meant."""
        given: dict[str, Any] = {}
        for column, patterns in self._patterns.items():
            for conditional in patterns:
                pattern, _, other = conditional.partition(" unless ")
                if told.get(other.strip("{}")) is not None:
                    continue
                parts = _PART.findall(pattern)
                values = [_value(told.get(name), type_name) for name, type_name in parts]
                if any(value is None for value in values):
                    continue
                if _PART.fullmatch(pattern):
                    given[column] = values[0]
                else:
                    between = _BETWEEN.split(pattern)
                    pairs = zip(between, [*values, ""], strict=True)
                    given[column] = "".join(f"{text}{value}" for text, value in pairs)
                break
        return given


def _value(told: Any, type_name: str) -> Any:
    """Return a part by its type; an empty text tells nothing."""
    if not type_name or told is None or told == "":
        return None if told == "" else told
    return VALUE_TYPES[type_name].parse(str(told))
