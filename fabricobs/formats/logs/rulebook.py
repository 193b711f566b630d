"""The rules of the formats of one file as tables for the compiled matcher."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.compiled import programs as p
from fabricobs.formats.compiled.expressions import Compiler, Expressions
from fabricobs.formats.compiled.programs import Programs
from fabricobs.formats.definition import LineRule
from fabricobs.formats.logs.headings import HEADINGS
from fabricobs.formats.logs.lines import CompiledRule, LineFormat
from fabricobs.formats.logs.messages import BAR_MARK, REPEATED_MARK
from fabricobs.formats.logs.prefixes import Labels, prefix_expressions, unnamed
from fabricobs.formats.source import MARGIN
from fabricobs.formats.templates import Template
from fabricobs.formats.values import VALUE_TYPES
from fabricobs.formats.values.texts import parse_text

Floats = NDArray[np.float64]


def _rates(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.where(values == 0, np.nan, 1000 / values)


# Types of numbers: how the matcher reads them, and what their conversion makes of them.
_NUMERIC: dict[str, tuple[int, Callable[[Floats], Floats] | None]] = {
    "int": (p.WHOLE, None),
    "rank_of": (p.WHOLE, None),
    "hex": (p.HEX, None),
    "time": (p.TIME, None),
    "number": (p.NUMBER, None),
    "seconds": (p.NUMBER, lambda values: values * 1000),
    "millis": (p.NUMBER, lambda values: values * 1000),
    "seconds_in_us": (p.NUMBER, lambda values: values * 1e6),
    "gbits": (p.NUMBER, lambda values: values / 8),
    "rate": (p.NUMBER, _rates),
}
TYPE_NAMES = tuple(VALUE_TYPES)
_TYPE_NUMBERS = {name: number for number, name in enumerate(TYPE_NAMES)}
# The conversions of these take every text of their pattern; others are asked.
_SURE = frozenset({"flag", "gdr", "hash", "program", "algorithm", "protocol"})
_NO_CONSTANT = -1
_FEWEST_GROUPS = 16  # anchors have some of their own
_ASCII_PARTS = re.compile(r"[\x00-\x7f]+")


@dataclass(frozen=True, slots=True)
class Slot:
    """A field of rows: the column it fills, and how its numbers are to be read."""

    place: int
    column: str
    kind: int  # WHOLE, NUMBER, TIME, or 0 for the number of a text
    convert: Callable[[Floats], Floats] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One template of a rule."""

    format: int
    rule: LineRule
    template: Template
    about: str  # an ignored line is


@dataclass(frozen=True, slots=True)
class Condition:
    """What a prefix must tell for the rules of a format, and what must be kept."""

    format: int
    told: tuple[tuple[str, str], ...] = ()
    kept: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Rulebook:
    """The programs of some formats, and what their numbers mean."""

    formats: tuple[LineFormat, ...]
    programs: Programs
    expressions: Expressions
    entries: tuple[Entry, ...]
    conditions: tuple[Condition, ...]
    slots: dict[tuple[int, str], tuple[Slot, ...]]  # by format and table, "" for none
    registers: tuple[tuple[int, str], ...]  # whose kept field: group of formats, name
    constants: dict[tuple[int, str], tuple[str, ...]]
    group_of: tuple[int, ...]  # which formats keep fields together
    most_groups: int

    @property
    def most_slots(self) -> int:
        """Return how many fields a row needs at most."""
        return max((len(slots) for slots in self.slots.values()), default=0)


@cache
def rulebook(formats: tuple[LineFormat, ...], marks: tuple[str, ...], labels: Labels) -> Rulebook:
    """Compile formats in the order in which they are asked; `marks` are all of the file."""
    maker = _maker(formats, marks)
    book = maker.book
    shown, others = prefix_expressions(labels)
    known = len(shown) if labels == ("bracket",) else 0
    peels = [known, *(maker.sure(each) for each in (*shown, *others))]
    return replace(
        book,
        programs=book.programs._replace(peels=np.array(peels, np.int32)),
        expressions=maker.compiler.expressions(),
    )


@cache
def _maker(formats: tuple[LineFormat, ...], marks: tuple[str, ...]) -> "_Maker":
    return _Maker(formats, marks)


@dataclass(slots=True)
class _Maker:
    formats: tuple[LineFormat, ...]
    marks: tuple[str, ...]
    book: Rulebook = field(init=False)
    compiler: Compiler = field(default_factory=Compiler)
    groups: list[tuple[int, int, int]] = field(default_factory=list)
    finds: list[tuple[int, int, int]] = field(default_factory=list)
    sets: list[tuple[int, int]] = field(default_factory=list)
    slots: dict[tuple[int, str], list[Slot]] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)
    registers: list[tuple[int, str]] = field(default_factory=list)
    constants: dict[tuple[int, str], list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        entries = [
            (number, rule, template)
            for number, format_ in enumerate(self.formats)
            for rule in format_.rules
            for template in rule.templates
        ]
        conditions = [self._condition(number, rule.definition) for number, rule, _ in entries]
        rows = [
            self._entry(number, rule, template, condition)
            for (number, rule, template), condition in zip(entries, conditions, strict=True)
        ]
        for row, (number, rule, _) in zip(rows, entries, strict=True):
            row[p.SLOTS] = len(self.slots.get((number, rule.definition.table or ""), ()))
        all_texts = self._texts(rows)
        self.book = Rulebook(
            self.formats,
            all_texts,
            self.compiler.expressions(),
            tuple(
                Entry(n, rule.definition, t, rule.definition.about or self.formats[n].name)
                for n, rule, t in entries
            ),
            tuple(self.conditions),
            {key: tuple(slots) for key, slots in self.slots.items()},
            tuple(self.registers),
            {key: tuple(values) for key, values in self.constants.items()},
            tuple(self._group(number) for number in range(len(self.formats))),
            _FEWEST_GROUPS + max((group for group, _, _ in self.groups), default=0),
        )

    def _group(self, format_: int) -> int:
        """Return with which formats a format keeps fields: -1, or its own number if alone."""
        return format_ if self.formats[format_].isolated else -1

    def _condition(self, format_: int, rule: LineRule) -> int:
        anchor = self.formats[format_].anchor
        told = anchor.groupindex if anchor is not None else {}
        condition = Condition(
            format_,
            tuple((k, v) for k, v in rule.when.items() if k in told),
            tuple((k, v) for k, v in rule.when.items() if k not in told),
        )
        for name, value in condition.kept:
            register = (self._group(format_), name)
            if register not in self.registers:
                self.registers.append(register)
            values = self.constants.setdefault(register, [])
            if value not in values:
                values.append(value)
        if condition not in self.conditions:
            self.conditions.append(condition)
        return self.conditions.index(condition)

    def _entry(
        self, format_: int, rule: CompiledRule, template: Template, condition: int
    ) -> list[int]:
        row = [0] * p.ENTRY_WIDTH
        row[p.FORMAT], row[p.CONDITION], row[p.PLACE] = format_, condition, rule.place
        row[p.SHARED] = int(rule.definition.shared)
        row[p.NEEDS_ROWS] = int(bool(rule.definition.increment))  # it is counted by them
        row[p.EACH] = row[p.REST] = -1
        if not self._follow(row, format_, rule, template):
            which = self.compiler.add(template.expression)
            if which is None:
                # A program holds no characters beyond ASCII: what is left of the literal must do.
                needed = max(_ASCII_PARTS.findall(template.literal), key=len, default="")
                which = self.sure(f".*?{re.escape(needed)}")
            row[p.OUTCOME], row[p.EXPRESSION] = p.LEFT, which
        return row

    def _follow(self, row: list[int], format_: int, rule: CompiledRule, template: Template) -> bool:
        """Fill in what the matcher does with a line of the template; False if it cannot."""
        definition = rule.definition
        expressions = [
            self.compiler.add(each.expression)
            for each in (template, *rule.find, *((rule.each,) if rule.each else ()))
        ]
        if None in expressions or not self._keeps(row, format_, rule, template):
            return False
        first, *others = (number for number in expressions if number is not None)
        ignored = rule.drops(template)
        row[p.EXPRESSION], row[p.OUTCOME] = first, p.IGNORED if ignored else p.ROW
        row[p.GROUPS], row[p.GROUPS_END] = self._groups(format_, definition, template)
        row[p.FINDS] = len(self.finds)
        for found, which in zip(rule.find, others, strict=False):
            self.finds.append((which, *self._groups(format_, definition, found)))
        row[p.FINDS_END] = len(self.finds)
        if rule.each is not None:
            row[p.EACH] = others[-1]
            row[p.EACH_GROUPS], row[p.EACH_GROUPS_END] = self._groups(
                format_, definition, rule.each
            )
            names = [name for name, _ in template.fields]
            row[p.REST] = names.index("rest") if "rest" in names else -1
        return True

    def _groups(self, format_: int, rule: LineRule, template: Template) -> tuple[int, int]:
        """Say which groups of a template go to which slots."""
        begin = len(self.groups)
        for group, (name, type_name) in enumerate(template.fields):
            if name == "rest" and rule.each is not None:
                continue
            kind, convert = _NUMERIC.get(type_name, (_TYPE_NUMBERS[type_name], None))
            slots = self.slots.setdefault((format_, rule.table or ""), [])
            reading = 0 if kind >= 0 else p.WHOLE if kind == p.HEX else kind
            wanted = (name, reading, convert)
            for slot in slots:
                if (slot.column, slot.kind, slot.convert) == wanted:
                    break
            else:
                slot = Slot(len(slots), name, reading, convert)
                slots.append(slot)
            self.groups.append((group, slot.place, kind))
        return begin, len(self.groups)

    def _keeps(self, row: list[int], format_: int, rule: CompiledRule, template: Template) -> bool:
        """Fill in what a line sets that conditions ask for; False where only the reference can."""
        definition = rule.definition
        row[p.SETS] = row[p.SETS_END] = len(self.sets)
        if definition.context and rule.drops(template):
            return False
        if definition.context and (rule.each or "ts" in definition.context):
            return False
        if any((self._group(format_), name) in self.registers for name in definition.increment):
            return False
        captured = {name for each in (template, *rule.find) for name, _ in each.fields}
        for name in definition.context:
            register = (self._group(format_), name)
            if register not in self.registers:
                continue
            if name in captured:
                return False
            if name in definition.set:
                values, value = self.constants[register], definition.set[name]
                constant = values.index(str(value)) if value in values else _NO_CONSTANT
                self.sets.append((self.registers.index(register), constant))
        row[p.SETS_END] = len(self.sets)
        return len(self.conditions[row[p.CONDITION]].kept) <= 1

    def _texts(self, rows: Sequence[list[int]]) -> Programs:
        firsts = self.compiler.first_bytes([row[p.EXPRESSION] for row in rows])
        formats = np.array([row[p.FORMAT] for row in rows])
        lists = [
            np.flatnonzero((formats == format_) & firsts[:, byte])
            for format_ in range(len(self.formats))
            for byte in range(256)
        ]
        texts = b""
        places = []
        for mark in (BAR_MARK, REPEATED_MARK, *self.marks):
            places.append((len(texts), len(mark.encode())))
            texts += mark.encode()
        asked = [
            name not in _SURE and VALUE_TYPES[name].parse is not parse_text for name in TYPE_NAMES
        ]
        return Programs(
            entries=_table(rows, p.ENTRY_WIDTH),
            groups=_table(self.groups, 3),
            finds=_table(self.finds, 3),
            sets=_table(self.sets, 2),
            conditions=_table([self._kept(condition) for condition in self.conditions], 2),
            formats=_table([self._format(format_) for format_ in self.formats], 3),
            marks=_table(places, 2),
            peels=np.empty(0, np.int32),
            headings=np.array([self.sure(f"^(?:{each})$") for each in HEADINGS], np.int32),
            asked=np.array(asked, np.uint8),
            texts=np.frombuffer(texts + bytes(MARGIN), np.uint8),
            needs=np.array(
                [self.compiler.needs(row[p.EXPRESSION]) for row in rows] or [(0,) * 4], np.uint64
            ),
            candidates=np.concatenate([*lists, [0]]).astype(np.int32),
            lists=np.cumsum([0, *map(len, lists)]).astype(np.int32),
        )

    def _kept(self, condition: Condition) -> tuple[int, int]:
        for name, value in condition.kept:
            register = (self._group(condition.format), name)
            return self.registers.index(register), self.constants[register].index(value)
        return -1, 0

    def _format(self, format_: LineFormat) -> tuple[int, int, int]:
        if format_.anchor is None:
            return -1, -1, 0
        mark = p.LEFT_MARKS + self.marks.index(format_.contains)
        return mark, self.sure(format_.anchor.pattern), int(format_.owns_lines)

    def sure(self, expression: str) -> int:
        """Compile an expression that must have a program; return its number."""
        number = self.compiler.add(unnamed(expression))
        if number is None:
            raise ValueError(f"{expression!r} cannot be compiled for the matcher")
        return number


def _table(rows: Sequence[Sequence[int]], width: int) -> NDArray[np.int32]:
    return np.array(rows or [[0] * width], np.int32).reshape(-1, width)
