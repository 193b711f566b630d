"""What a captured piece of text means: the types a definition may name.

Every type is a pattern (for line templates) and a conversion (for every reader). A conversion
returns None for the many spellings of "no value" and raises ValueError for text it cannot mean.
"""

from collections.abc import Callable
from dataclasses import replace

from fabricobs.formats.values import hosts, infiniband, nccl, numbers, switches, texts, times
from fabricobs.formats.values.hosts import parse_rdma_port
from fabricobs.formats.values.kinds import (
    LONGEST_NUMBER,
    MISFITS,
    NO_VALUE,
    Unfit,
    Value,
    ValueType,
)
from fabricobs.formats.values.numbers import (
    beyond_64_bits,
    in_64_bits,
    parse_hex,
    parse_number,
    parse_whole,
)
from fabricobs.formats.values.switches import (
    parse_cli_speed,
    parse_link_state,
    parse_speed,
    parse_switch_port,
    parse_traffic,
)
from fabricobs.formats.values.times import (
    EARLIEST_US,
    LATEST_US,
    OUT_OF_AGE,
    TIME_PATTERN,
    ZONED,
    parse_clock_alone,
    parse_date_and_time,
    parse_show_clock,
    parse_stamp,
    parse_time,
    parse_without_year,
    time_of,
)
from fabricobs.store.tables import Type

__all__ = [
    "DEFAULT_TYPE",
    "EARLIEST_US",
    "LATEST_US",
    "MISFITS",
    "NO_VALUE",
    "OUT_OF_AGE",
    "TIME_PATTERN",
    "VALUE_TYPES",
    "ZONED",
    "Unfit",
    "Value",
    "ValueType",
    "beyond_64_bits",
    "in_64_bits",
    "parse_cli_speed",
    "parse_clock_alone",
    "parse_date_and_time",
    "parse_hex",
    "parse_link_state",
    "parse_number",
    "parse_rdma_port",
    "parse_show_clock",
    "parse_speed",
    "parse_stamp",
    "parse_switch_port",
    "parse_time",
    "parse_traffic",
    "parse_whole",
    "parse_without_year",
    "time_of",
]


def _bounded(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """Return the conversion with a number that no column can hold told as Unfit."""

    def bounded(text: str) -> Value:
        if len(text) > LONGEST_NUMBER:
            return Unfit(text, "is too long for a number")
        try:
            value = parse(text)
        except OverflowError:
            return Unfit(text, "is too large")
        return in_64_bits(value, text) if type(value) is int else value

    return bounded


_TYPES: dict[str, ValueType] = {
    **texts.TYPES,
    **numbers.TYPES,
    **times.TYPES,
    **nccl.TYPES,
    **switches.TYPES,
    **hosts.TYPES,
    **infiniband.TYPES,
}

# These see to it themselves: the fast readers know them.
_CHECKED = frozenset({"int", "count", "hex", "number"})
VALUE_TYPES: dict[str, ValueType] = {
    name: replace(kind, parse=_bounded(kind.parse))
    if {"BIGINT", "DOUBLE", "TIMESTAMP"} & set(kind.fills) and name not in _CHECKED
    else kind
    for name, kind in _TYPES.items()
}

# What a cell becomes when its definition names no type.
DEFAULT_TYPE: dict[Type, str] = {
    "VARCHAR": "text",
    "BIGINT": "count",
    "DOUBLE": "number",
    "BOOLEAN": "flag",
    "TIMESTAMP": "time",
    "MAP(VARCHAR, BIGINT)": "count",
}
