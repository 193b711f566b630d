"""From keys to columns: which column a table header, a counter name or a field fills.

One grammar serves every reader: `"rx_prio{priority:int}_pause" = "priority_samples.pfc_rx_frames"`
reads the priority out of the key and fills that column of that table;
`port_rcv_data = "rx_bytes * 4"` converts words to bytes. `"<fwd|forward><|_time>_ms"` stands for
four keys, one of each; in records `"+comm_ms"` is a part of a sum.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from fabricobs.formats.definition import Block
from fabricobs.formats.templates import Template, TemplateError, compile_template
from fabricobs.formats.values import (
    DEFAULT_TYPE,
    MISFITS,
    VALUE_TYPES,
    Unfit,
    Value,
    in_64_bits,
)
from fabricobs.store.tables import TABLES, Column
from fabricobs.validation import nearest

# Columns that say which row a value belongs to; all others are what was measured.
IDENTITY = ("device", "port", "lane", "priority", "queue", "profile", "name", "part", "fact", "ts")
_CHOICE = re.compile(r"<([^<>]*\|[^<>]*)>")
# Names of one process; a file may bring any number.
_MOST_RESOLVED = 100_000
_TARGET = re.compile(r"^(\+)?(?:(\w+)\.)?(\w+)(?::(\w+))?(?: \* ([\d.eE+-]+))?$")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a key's value goes; `fields` are what the key itself tells."""

    table: str
    column: Column
    parse: Callable[[str], Value]
    factor: float | None
    fields: tuple[tuple[str, Value], ...] = ()
    is_part: bool = False  # of a sum, which counts where no other key gives the value

    @property
    def is_plain(self) -> bool:
        """Say whether the column's own type reads the value, not one that converts a unit."""
        return self.parse is VALUE_TYPES[DEFAULT_TYPE[self.column.type]].parse

    def convert(self, text: str) -> Value:
        """Convert a cell; ValueError if the text cannot be meant."""
        value = self.parse(text)
        if isinstance(value, Unfit):
            return self._kept(value)
        if self.factor is None or not isinstance(value, int | float):
            return value
        return self.convert_number(value, text)

    def convert_number(self, number: float, text: str) -> Value:
        """Convert a number written as `text`; a whole column takes what a factor gives rounded."""
        try:
            scaled = number if self.factor is None else number * self.factor
            if self.column.type != "BIGINT":
                return float(scaled)
        except OverflowError:
            return Unfit(text, "does not fit a double")
        if scaled != scaled:  # NaN; a whole number may be beyond what a double holds
            return None
        if isinstance(scaled, float) and math.isfinite(scaled) and self.factor is not None:
            scaled = round(scaled)
        if isinstance(scaled, float) and not scaled.is_integer():
            return Unfit(text, MISFITS["BIGINT"])
        return self._kept(in_64_bits(int(scaled), text))

    def _kept(self, value: int | Unfit) -> int | Unfit:
        """Return what the column keeps of a whole number that may not fit."""
        if isinstance(value, Unfit) and self.column.is_counter and value.as_counter is not None:
            return value.as_counter
        return value


class ColumnMapping:
    """The columns of a block, looked up by key; every key is resolved once."""

    def __init__(self, block: Block) -> None:
        self.table = block.table or ""
        self._plain: dict[str, Target] = {}
        self._patterns: list[tuple[Template, Target]] = []
        for keys, target in block.columns.items():
            for key in _choices(keys):
                self._add(key, _parse_target(target, self.table))
        self._ignored = [compile_template(key) for key in block.ignore]
        self._other = [compile_template(key) for key in block.other]
        self._ignored_keys = frozenset(key for key in block.ignore if "{" not in key)
        self._resolved: dict[str, Target | bool] = {}

    def _add(self, key: str, target: Target) -> None:
        if "{" in key:
            template = compile_template(key)
            for name, type_name in template.fields:
                check_column(target.table, name, type_name)
            self._patterns.append((template, target))
        else:
            self._plain.setdefault(key, target)

    def resolve(self, key: str) -> Target | bool:
        """Return the key's target, True for a key known and ignored, False for an unknown one."""
        found = self._resolved.get(key)
        if found is None:
            if len(self._resolved) >= _MOST_RESOLVED:
                self._resolved.clear()
            found = self._resolved[key] = self._look_up(key)
        return found

    def _look_up(self, key: str) -> Target | bool:
        if key in self._plain:
            return self._plain[key]
        if key in self._ignored_keys:
            return True
        for template, target in self._patterns:
            match = template.pattern.match(key)
            if match is not None:
                fields = tuple(template.read(match).items())
                return Target(target.table, target.column, target.parse, target.factor, fields)
        ignored = any(template.pattern.match(key) for template in self._ignored)
        return ignored and not any(template.pattern.match(key) for template in self._other)

    def targets(self) -> list[Target]:
        """Return what the keys and key templates of the definition fill."""
        return [*self._plain.values(), *(target for _, target in self._patterns)]

    def sources(self) -> dict[str, Target]:
        """Return the plain keys and their targets, in the order of the definition."""
        return self._plain


def _choices(key: str) -> Iterator[str]:
    """Yield the keys that a key with choices stands for."""
    parts = _CHOICE.split(key)  # every other part is a choice
    yield from map("".join, product(*(p.split("|") if n % 2 else [p] for n, p in enumerate(parts))))


def _parse_target(text: str, default_table: str) -> Target:
    match = _TARGET.match(text)
    if match is None:
        raise TemplateError(f"{text!r} is not [+][table.]column[:type][ * factor]")
    part, table, name, type_name, factor = match.groups()
    column = check_column(table or default_table, name, type_name)
    parse = VALUE_TYPES[type_name or DEFAULT_TYPE[column.type]].parse
    if part and column.type != "DOUBLE":
        raise TemplateError(f"{text!r}: {column.name} is {column.type}, not a sum of numbers")
    by = float(factor) if factor else None
    return Target(table or default_table, column, parse, by, is_part=part is not None)


def check_column(table: str, name: str, type_name: str | None) -> Column:
    """Return the column, or raise TemplateError naming the nearest one that exists."""
    if table not in TABLES:
        raise TemplateError(f"no table {table!r}{nearest(table, TABLES, else_all=True)}")
    column = TABLES[table].column(name)
    if column is None:
        names = [column.name for column in TABLES[table].columns]
        raise TemplateError(
            f"table {table} has no column {name!r}{nearest(name, names, else_all=True)}"
        )
    if type_name is not None and type_name not in VALUE_TYPES:
        raise TemplateError(
            f"unknown type {type_name!r}{nearest(type_name, VALUE_TYPES, else_all=True)}"
        )
    if type_name is not None and column.type not in VALUE_TYPES[type_name].fills:
        raise TemplateError(f"{table}.{name} is {column.type}: a {type_name} cannot fill it")
    return column
