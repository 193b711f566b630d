"""The yaml reader: lists of records that a person wrote, such as a host map.

Only the shape of the document is taken from YAML; every value stays the text that was written, so
that a port `1/20` or a switch named `no` is none of YAML's numbers and truths.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from fabricobs.formats.context import Context
from fabricobs.formats.definition import Definition
from fabricobs.formats.limits import LIMITS, in_mib
from fabricobs.formats.mapping import ColumnMapping, Target
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.source import LineBlock

# Lines as short nest so little that YAML's parser in C, which has no limit of depth, may read them.
_SHORT_LINE = 1_000
_BRACKET = re.compile(r"[\[\]{}]")


def _composed(text: str, lines: Sequence[str]) -> yaml.Node | None:
    """Return the tree of a document; ValueError if it is too deep, or refers to its own parts.

    An alias is no value of its own: ten of ten of ten are a bomb.
    """
    _refuse_depth(text)
    fast = getattr(yaml, "CSafeLoader", None)
    short = all(len(line) <= _SHORT_LINE for line in lines)
    root = yaml.compose(text, fast if fast is not None and short else yaml.SafeLoader)
    shown, level = 0, [root] if root is not None else []
    while level:
        inner: list[yaml.Node] = []
        for node in level:
            if isinstance(node, yaml.MappingNode):
                inner.extend(part for pair in node.value for part in pair)
            elif isinstance(node, yaml.SequenceNode):
                inner.extend(node.value)
            if shown + len(inner) > len(text) + 1:
                raise ValueError("aliases that make more values than the document has letters")
        shown += len(inner)
        level = inner
    return root


def _refuse_depth(text: str) -> None:
    """Raise ValueError for brackets in brackets, before a parser goes down there."""
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += 1 if found[0] in "[{" else -1
        if depth > LIMITS.document_levels:
            raise ValueError(f"more than {LIMITS.document_levels} levels deep")


class YamlFormat:
    """A compiled `yaml` definition: a block's `where` is the key its list of records stands at."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.blocks = {block.where or "": ColumnMapping(block) for block in definition.block}


@dataclass(slots=True)
class YamlReader:
    """One `yaml` format reading one file."""

    document: YamlFormat
    context: Context
    rows: Rows
    tally: Tally
    _starts: list[int] = field(default_factory=list)  # index of the first character of each line
    _read: set[int] = field(default_factory=set)
    _missed: dict[int, str] = field(default_factory=dict)

    def read(self, blocks: Iterator[LineBlock]) -> None:
        """Read the document; every line is parsed, ignored (comments, structure) or unparsed."""
        data = b""
        for block in blocks:
            data += block.data
            if len(data) > LIMITS.yaml_bytes:
                break
        text = data.decode("utf-8", "replace")
        lines = text.removesuffix("\n").split("\n") if text else []
        self._starts = [0]
        for line in lines[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)
        try:
            if len(data) > LIMITS.yaml_bytes:
                raise ValueError(f"longer than {in_mib(LIMITS.yaml_bytes)}")
            self._document(_composed(text, lines))
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            reason = " ".join(str(error).split()) or "nested too deeply"
            self._missed = dict.fromkeys(range(1, len(lines) + 1), reason)
        for number, line in enumerate(lines, 1):
            if number in self._missed:
                self.tally.miss(number, f"{self.document.name}: {self._missed[number]}", line)
            elif number in self._read:
                self.tally.read()
            else:
                self.tally.skip()

    def _document(self, root: yaml.Node | None) -> None:
        known = ", ".join(self.document.blocks)
        if not isinstance(root, yaml.MappingNode):
            raise ValueError(f"the document must have the keys {known}")
        for key, value in root.value:
            mapping = self.document.blocks.get(str(key.value))
            if mapping is None:
                self._miss(key, f"unknown key {key.value!r}; one of {known}")
            elif not isinstance(value, yaml.SequenceNode):
                self._miss(key, f"{key.value} must be a list")
            else:
                for record in value.value:
                    self._record(record, mapping, {})

    def _record(
        self, node: yaml.Node, mapping: ColumnMapping, outer: dict[str, Any], depth: int = 1
    ) -> None:
        """Add a record's row; each item of a list inside it is a row with its other fields."""
        if not isinstance(node, yaml.MappingNode):
            self._miss(node, "a record must be keys and values")
            return
        fields = dict(outer)
        lists: list[tuple[yaml.Node, yaml.SequenceNode]] = []
        for key, value in node.value:
            if isinstance(value, yaml.SequenceNode):
                lists.append((key, value))
            else:
                self._field(key, value, mapping, fields)
        for key, values in lists:
            for item in values.value:
                if isinstance(item, yaml.MappingNode) and depth:
                    self._record(item, mapping, fields, depth - 1)
                elif isinstance(item, yaml.MappingNode):
                    self._miss(item, "lists of records inside lists of records end here")
                else:
                    inner = dict(fields)
                    if self._field(key, item, mapping, inner):
                        self._add(inner, mapping, item)
        if not lists:
            self._add(fields, mapping, node)

    def _field(
        self, key: yaml.Node, value: yaml.Node, mapping: ColumnMapping, fields: dict[str, Any]
    ) -> bool:
        target = mapping.resolve(str(key.value))
        if not isinstance(target, Target):
            known = ", ".join(mapping.sources())
            self._miss(key, f"unknown key {key.value!r}; one of {known}")
            return False
        if not isinstance(value, yaml.ScalarNode):
            self._miss(value, f"{key.value} must be one value")
            return False
        try:
            fields[target.column.name] = target.convert(value.value)
        except ValueError as error:
            self._miss(value, f"{key.value}: {error}")
            return False
        self._read.add(self._line(key))
        self._read.add(self._line(value))
        return True

    def _add(self, fields: dict[str, Any], mapping: ColumnMapping, node: yaml.Node) -> None:
        if fields:
            base = self.context.base(mapping.table, self.document.name, snapshot=False)
            self.rows.add(mapping.table, {**base, "line": self._line(node), **fields})

    def _miss(self, node: yaml.Node, reason: str) -> None:
        self._missed[self._line(node)] = reason

    def _line(self, node: yaml.Node) -> int:
        """Return the number of the line a node begins at; only a newline ends a line."""
        return bisect_right(self._starts, node.start_mark.index)
