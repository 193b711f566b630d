"""What a type of text is: a pattern, a conversion, and the columns it may fill."""

from collections.abc import Callable
from dataclasses import dataclass

from fabricobs.store.tables import Type

# The longest text of a number or time that can be meant; Python refuses 4,300 digits.
LONGEST_NUMBER = 640
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Unfit:
    """A value that no column can hold, in the place of the value; it becomes null and is told."""

    text: str
    reason: str
    as_counter: int | None = None  # what a column of a counter keeps of it

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}..."
        return f"{shown} {self.reason}"


# Why a text or value cannot fill a column, by the type of the column.
MISFITS: dict[Type, str] = {
    "VARCHAR": "is no text",
    "BIGINT": "is no whole number",
    "DOUBLE": "is no number",
    "BOOLEAN": "is neither true nor false",
    "TIMESTAMP": "is no time",
    "MAP(VARCHAR, BIGINT)": "is no whole number",
}
Value = str | int | float | bool | Unfit | None
# Written for "no value" by the tools of switches, NICs and, in brackets, GPUs: never zero.
_IN_BRACKETS = (
    "[n/a]",
    "[not supported]",
    "[unknown error]",
    "[gpu is lost]",
    "[gpu requires reset]",
)
NO_VALUE = frozenset(
    {"", "-", "--", "n/a", "na", "n/a (no pma)", "none", "null", "unknown!", *_IN_BRACKETS}
)


@dataclass(frozen=True, slots=True)
class ValueType:
    """A type a definition may name: its pattern, its conversion, the column types it may fill."""

    pattern: str
    parse: Callable[[str], Value]
    fills: tuple[Type, ...]
