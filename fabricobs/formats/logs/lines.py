"""The lines reader: one definition's rules against one line at a time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from itertools import islice
from typing import Any, Protocol

from fabricobs.formats.context import Context, column_names
from fabricobs.formats.definition import Definition, LineRule
from fabricobs.formats.logs.prefixes import HostNames, before_message, prefix_columns
from fabricobs.formats.mapping import check_column
from fabricobs.formats.rows import Rows
from fabricobs.formats.templates import (
    Template,
    TemplateError,
    compile_regex,
    compile_template,
)
from fabricobs.formats.values import parse_whole
from fabricobs.store.tables import TABLES

_MOST_FOREIGN = 500


class Outcome(Enum):
    """What became of a line. A reader answers with a text instead where it should have read it."""

    NOT_MINE = "not mine"
    PARSED = "parsed"
    IGNORED = "ignored"
    HELD = "held"  # the beginning of a row that goes on in the next line
    JOINED = "joined"  # parsed, together with the line that was held


class TextReader(Protocol):
    """One format reading a text, line by line."""

    def offer(self, line: str, number: int) -> Outcome | str:
        """Take the line, or answer NOT_MINE; a text says why a line of this format failed."""
        ...


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A compiled rule."""

    definition: LineRule
    templates: tuple[Template, ...]
    find: tuple[Template, ...]
    each: Template | None
    place: int  # in the definition

    def drops(self, template: Template) -> bool:
        """Say whether it keeps nothing of a line: behind a label, a rule may keep more of it.

        One that takes any text, and notes that it did, does not know whether a label is before it.
        """
        takes_any = not template.literal and not template.fields
        return self.definition.table is None and (not self.definition.context or takes_any)


class LineFormat:
    """A compiled `lines` definition; shared by all files read with it."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.contains = definition.contains
        # Two words before a message say whose it is: no other format is asked.
        self.owns_lines = " " in definition.contains
        self.isolated = definition.isolated
        self.anchor = compile_regex(definition.anchor) if definition.anchor else None
        self.rules = [
            _compile_rule(rule, definition, place) for place, rule in enumerate(definition.line)
        ]
        entries = [(rule, template) for rule in self.rules for template in rule.templates]
        # Headers of tables, which come again in every file of a kind.
        self._foreign: set[str] = set()
        self._others = [entry for entry in entries if entry[1].first_word is None]
        self._by_word = {
            word: [entry for entry in entries if entry[1].first_word in {None, word}]
            for word in {template.first_word for _, template in entries} - {None}
        }

    def match(
        self, message: str, known: dict[str, Any], below: CompiledRule | None = None
    ) -> tuple[CompiledRule, Template, re.Match[str]] | None:
        """Return the first rule, in the definition's order, whose template fits the message.

        `known` are the fields a rule may ask for: the anchor's and what earlier lines left. Only
        rules that stand below `below` count.
        """
        if message in self._foreign:
            return None
        fits_none = below is None
        for rule, template in self._candidates(message.split(" ", 1)[0]):
            if template.literal not in message or (below is not None and rule.place <= below.place):
                continue
            if any(known.get(name) != value for name, value in rule.definition.when.items()):
                fits_none = False
                continue
            found = template.pattern.match(message)
            if found is not None:
                return rule, template, found
        if fits_none and self.anchor is None:
            if len(self._foreign) >= _MOST_FOREIGN:
                self._foreign.clear()
            self._foreign.add(message)
        return None

    def _candidates(self, word: str) -> list[tuple[CompiledRule, Template]]:
        """Return the rules a message beginning with `word` may fit, in the definition's order."""
        return self._by_word.get(word, self._others)


def _compile_rule(rule: LineRule, definition: Definition, place: int) -> CompiledRule:
    name = definition.name
    searched = rule.find or (definition.find if rule.table else ())
    templates = tuple(compile_template(source) for source in rule.template)
    find = tuple(compile_template(source, whole=False) for source in searched)
    each = compile_template(rule.each, whole=False) if rule.each else None
    for template in (*templates, *find, *((each,) if each else ())):
        for field, type_name in template.fields:
            if field == "rest" and each is not None:
                continue
            if rule.table is not None and field not in rule.context:
                check_column(rule.table, field, type_name)
            elif rule.table is None and field not in rule.context:
                raise TemplateError(
                    f"{name}: {template.source!r} captures {field!r} but neither fills a table "
                    "nor keeps it; drop the name"
                )
    if rule.table is not None:
        for column in rule.set.keys() - set(rule.context):
            check_column(rule.table, column, None)
    return CompiledRule(rule, templates, find, each, place)


class LineReader:
    """One `lines` format reading one file."""

    def __init__(self, line_format: LineFormat, context: Context, rows: Rows) -> None:
        self.format = line_format
        self.context = replace(context, kept={}, _base={}) if line_format.isolated else context
        self._rows = rows
        self._hosts = HostNames()
        self.ignored_about = line_format.name  # what the last line it dropped was about
        self._foreign_message = f"{line_format.name}: no rule fits this line"

    def offer(self, line: str, number: int) -> Outcome | str:
        """Read the line, which holds one message of the format at most."""
        anchor = self.format.anchor
        if anchor is None:
            return self._read(line.strip(), line, number, {})
        found = anchor.search(line) if self.format.contains in line else None
        if found is None:
            return Outcome.NOT_MINE
        try:
            prefix = self.prefix_fields(found)
        except ValueError as error:
            return f"{self.format.name}: {error}"
        outcome = self._read(line[found.end() :].strip(), line, number, prefix)
        return self._foreign_message if outcome is Outcome.NOT_MINE else outcome

    def prefix_fields(self, found: re.Match[str]) -> dict[str, Any]:
        """Return what an anchor and what stands before it tell."""
        context, labels = self.context, self.context.labels
        before = found.string[: found.start()]
        told, _ = before_message(before, labels)
        fields = prefix_columns(told, context.zone, context.modified_us)
        fields.update(_anchored(found))
        if "host" in found.groupdict() and found["host"] is not None:
            fields["host"] = self._hosts.clean(fields["host"], before, labels)
        return fields

    def starts(self, line: str) -> Iterator[int]:
        """Yield where messages begin in a line, a torn-off piece before a host left out."""
        if self.format.anchor is None:
            return
        # A second search costs more than the first, and most lines hold one message.
        most = line.count(self.format.contains)
        for found in islice(self.format.anchor.finditer(line), most):
            torn = 0
            if found.groupdict().get("host"):
                before = line[: found.start()]
                host = self._hosts.clean(found["host"], before, self.context.labels)
                torn = len(found["host"]) - len(host)
            yield found.start() + torn

    def _read(self, message: str, line: str, number: int, prefix: dict[str, Any]) -> Outcome | str:
        kept = self.context.kept
        known = {**kept, **prefix} if kept else prefix
        hit = self.format.match(message, known)
        if hit is None:
            return Outcome.NOT_MINE
        outcome = self._read_by(hit, line, number, prefix)
        while hit is not None and hit[0].definition.shared:
            hit = self.format.match(message, known, below=hit[0])
            if hit is not None:
                self._read_by(hit, line, number, prefix)
        return outcome

    def _read_by(
        self,
        hit: tuple[CompiledRule, Template, re.Match[str]],
        line: str,
        number: int,
        prefix: dict[str, Any],
    ) -> Outcome | str:
        rule, template, found = hit
        try:
            context = self.context
            captured = template.read(found, context.zone, context.modified_us)
            for extra in rule.find:
                other = extra.pattern.search(line)
                if other is not None:
                    captured.update(extra.read(other, context.zone, context.modified_us))
        except ValueError as error:
            return f"{self.format.name}: {error}"
        definition = rule.definition
        if definition.context:
            constants = {k: v for k, v in definition.set.items() if k in definition.context}
            given = {name: captured[name] for name in definition.context if name in captured}
            self.context.keep({**constants, **given})
        if definition.table is None:
            self.ignored_about = definition.about or self.format.name
            return Outcome.IGNORED if rule.drops(template) else Outcome.PARSED
        base = self.context.base(definition.table, self.format.name, snapshot=False)
        base["line"] = number
        names = column_names(definition.table)
        _fill(base, {name: value for name, value in prefix.items() if name in names})
        base.update((name, value) for name, value in definition.set.items() if name in names)
        try:
            hits = list(self._hits(rule, captured, line))
        except ValueError as error:
            return f"{self.format.name}: {error}"
        for hit_fields in hits:
            row = dict(base)
            _fill(row, hit_fields)
            self._rows.add(definition.table, row)
        if definition.increment:
            kept = self.context.kept
            counted = {k: kept[k] for k in definition.increment if kept.get(k) is not None}
            self.context.keep({k: number + 1 for k, number in counted.items()})
        return Outcome.PARSED

    def _hits(
        self, rule: CompiledRule, captured: dict[str, Any], line: str
    ) -> Iterator[dict[str, Any]]:
        """Yield the captured fields once, or once for every hit inside `rest` or the line."""
        table = rule.definition.table or ""
        names = column_names(table)
        fields = {name: value for name, value in captured.items() if name in names}
        if rule.each is None:
            yield fields
            return
        searched = (captured["rest"] or "") if "rest" in captured else line
        for found in rule.each.pattern.finditer(searched):
            read = rule.each.read(found, self.context.zone, self.context.modified_us)
            yield {**fields, **read}


def _fill(row: dict[str, Any], fields: dict[str, Any]) -> None:
    row.update(fields)
    if fields.get("ts") is not None:
        row["ts_source"] = "inline"


@cache
def _is_whole(name: str) -> bool:
    """Say whether a group of an anchor fills a column of whole numbers."""
    columns = (table.column(name) for table in TABLES.values())
    return any(column is not None and column.type == "BIGINT" for column in columns)


def _anchored(found: re.Match[str]) -> dict[str, Any]:
    """Return the fields of an anchor's groups."""
    return {
        name: parse_whole(text) if _is_whole(name) else text
        for name, text in found.groupdict().items()
        if text is not None
    }
