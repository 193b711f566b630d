"""The json reader: whole documents, whose records lie somewhere in a tree of objects and lists.

A block's `where` is the path to its records: `communicators[].ranks[]` goes into every item of the
lists, `counts.{op}` into every key of an object, which fills that column; an empty path is the
document itself. A column's key is a path below the record, `.` for the record itself, and with a
dot in front a path from the top, through the items the record lies in: `.communicators.hash`.
Nothing but what the paths name is kept: a document may hold an environment with secrets in it.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fabricobs.formats.context import Context, column_names
from fabricobs.formats.definition import Block, Definition
from fabricobs.formats.mapping import ColumnMapping, Target, check_column
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.templates import TemplateError

LONGEST_DOCUMENT = 256 << 20
_STEP = re.compile(r"(?P<key>[\w-]+)(?P<items>\[\])?|\{(?P<field>\w+)\}")


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a path: a key, perhaps into each item of its list, or every key as a field."""

    key: str
    items: bool = False
    field: str = ""


class TreeBlock:
    """A compiled block: the way to its records, and which of their paths fill columns."""

    def __init__(self, block: Block, name: str) -> None:
        if block.table is None:
            raise TemplateError(f"{name}: a block of a json document needs a table")
        self.table = block.table
        self.set = block.set
        self.mapping = ColumnMapping(block)
        self.steps = tuple(_step(text, name) for text in (block.where or "").split(".") if text)
        for step in self.steps:
            if step.field:
                check_column(self.table, step.field, None)


class TreeFormat:
    """A compiled `json` definition."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.blocks = tuple(TreeBlock(block, definition.name) for block in definition.block)


def _step(text: str, name: str) -> _Step:
    found = _STEP.fullmatch(text)
    if found is None:
        raise TemplateError(f"{name}: {text!r} is no step of a path: key, key[] or {{column}}")
    if found["field"]:
        return _Step("", field=found["field"])
    return _Step(found["key"], items=found["items"] is not None)


def read_trees(
    data: bytes, tree_format: TreeFormat, context: Context, rows: Rows, tally: Tally
) -> None:
    """Read the documents of a file, one after another; one that breaks off gives what it holds.

    Every line of a document counts as read. No text of it is kept for a line that is not.
    """
    text = data.decode("utf-8", "replace")
    read = 0
    lines = text.count("\n") + (not text.endswith("\n") and text != "")
    for document in documents(text):
        if document is None:
            read += 1
            tally.miss(lines, f"{tree_format.name}: breaks off or is no JSON here", "")
            continue
        for block in tree_format.blocks:
            for record, above, given in _records(document, block.steps):
                _add(block, record, {**above, "": document}, given, context, rows, tree_format.name)
    tally.read(max(lines - read, 0))


def documents(text: str) -> Iterator[Any | None]:
    """Yield the documents of a text, None for each place where one cannot be read to its end."""
    decoder = json.JSONDecoder(strict=False)
    position = 0
    while True:
        start = re.compile(r"[\[{]").search(text, position)
        if start is None:
            return
        try:
            document, position = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            mended = _mended(text[start.start() :])
            if mended is not None:
                yield mended
            yield None
            return
        yield document


def _mended(text: str) -> Any | None:
    """Return what a document holds that breaks off: cut behind its last whole object or list."""
    closers: list[str] = []
    cut, open_there = 0, ""
    for found in re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL).finditer(text):
        mark = found[0]
        if mark in "[{":
            closers.append("]" if mark == "[" else "}")
        elif mark in "]}":
            if not closers or closers.pop() != mark:
                break
            cut, open_there = found.end(), "".join(reversed(closers))
    if cut == 0:
        return None
    try:
        return json.loads(text[:cut] + open_there, strict=False)
    except (ValueError, RecursionError):
        return None


def _records(
    node: Any, steps: tuple[_Step, ...], path: str = ""
) -> Iterator[tuple[Any, dict[str, Any], dict[str, str]]]:
    """Yield each record with the items it lies in, by path, and the keys that fill columns."""
    if not steps:
        yield node, {}, {}
        return
    step, rest = steps[0], steps[1:]
    if not isinstance(node, dict):
        return
    if step.field:
        for key, value in node.items():
            for record, above, given in _records(value, rest, path):
                yield record, above, {step.field: key, **given}
        return
    below = f"{path}.{step.key}"
    value = node.get(step.key)
    items = value if step.items and isinstance(value, list) else [value]
    for item in items:
        if item is not None:
            for record, above, given in _records(item, rest, below):
                yield record, {below: item, **above}, given


def _add(
    block: TreeBlock,
    record: Any,
    above: dict[str, Any],
    given: dict[str, str],
    context: Context,
    rows: Rows,
    name: str,
) -> None:
    row = context.base(block.table, name, snapshot=True)
    place: dict[str, Any] = {name: row[name] for name in ("ts", "ts_source") if name in row}
    row.update((key, value) for key, value in block.set.items() if key in column_names(block.table))
    row.update(dict.fromkeys((t.column.name for t in block.mapping.sources().values()), None))
    row.update(given)
    filled = False
    for key, value in _leaves(record):
        target = block.mapping.resolve(key)
        filled |= isinstance(target, Target) and _fill(row, target, value)
    for key, target in block.mapping.sources().items():
        if key.startswith(".") and key != ".":
            _fill(row, target, _at(above, key))
    if place:
        told = row["ts"] is not None and row["ts"] != place["ts"]
        row.update({"ts_source": block.set.get("ts_source", "inline")} if told else place)
    if filled:
        rows.add(block.table, row)


def _leaves(record: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a record by their path; `.` is a record that is a value itself."""
    if not isinstance(record, dict):
        yield path or ".", record
        return
    for key, value in record.items():
        yield from _leaves(value, f"{path}.{key}" if path else str(key))


def _at(above: dict[str, Any], key: str) -> Any:
    """Return the value at a path from the top, through the nearest item the record lies in."""
    nearest = max((path for path in above if f"{key}.".startswith(f"{path}.")), key=len, default="")
    node = above[nearest]
    for part in key[len(nearest) :].strip(".").split("."):
        if isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        elif isinstance(node, dict):
            node = node.get(part)
        else:
            return None
    return node


def _fill(row: dict[str, Any], target: Target, value: Any) -> bool:
    """Fill a column where the value can be meant; the first key of a column that does counts."""
    if value is None or isinstance(value, dict | list) or row.get(target.column.name) is not None:
        return False
    try:
        converted = target.convert(str(value).strip())
    except (ValueError, OverflowError):
        return False
    if converted is None or (isinstance(converted, float) and math.isnan(converted)):
        return False
    row[target.column.name] = converted
    row.update(target.fields)
    return True
