"""What a type of text is: a pattern, a conversion, and the columns it may fill."""

from collections.abc import Callable
from dataclasses import dataclass

from fabricobs.store.tables import Type

Value = str | int | float | bool | None
# Written for "no value" by the switch and NIC tools: never zero.
NO_VALUE = frozenset({"", "-", "--", "n/a", "na", "n/a (no pma)", "none", "null", "unknown!"})


@dataclass(frozen=True, slots=True)
class ValueType:
    """A type a definition may name: its pattern, its conversion, the column types it may fill."""

    pattern: str
    parse: Callable[[str], Value]
    fills: tuple[Type, ...]
