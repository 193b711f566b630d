"""Exports of log services: records with the logged line in one of their fields.

JSON lines, whole documents (lists, answers of APIs) and CSV. The field that holds
the line is found by content: its texts show formats. `meanings.py` says what other fields mean.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from fabricobs.formats.documents.jsontext import below_banner, documents, loads
from fabricobs.formats.logs.meanings import fields_by_meaning, meaning_of
from fabricobs.formats.values import parse_time

Syntax = Literal["jsonl", "json", "csv", "journal"]
Path = tuple[str, ...]
ITEM = "[]"  # a step of a path into each item of a list
INSIDE = "{}"  # a step of a path into a text that is JSON itself

_SHOWN_RECORDS = 400
LONGEST_HEAD = 1 << 18
_DEEPEST = 12
_NAMED = re.compile(r"[\w.-]{1,63}:\S*")
_TAGGED = re.compile(r"(\S+)\t\S+\t(\{.*)", re.DOTALL)
_JOURNAL = re.compile(r"__[A-Z_]+=.*\n[A-Z_]+=")
_MOMENT = re.compile(r"\d{10,19}$|\d{4}-\d\d-\d\d[T ]")
_COLUMN = re.compile(r"[@A-Za-z_][\w .@/()\[\]-]{0,63}")
_PIECE_FLAGS = {"_p", "logtag"}  # Fluent Bit, Fluentd: what containerd cut

_Scopes = tuple[tuple[tuple[str, Any], ...], ...]


@dataclass(frozen=True, slots=True)
class Export:
    """How an export is written: the path to its records, and the fields that may hold the line.

    Of the fields the first counts that a record has: several may hold the same line.
    """

    syntax: Syntax
    root: Path
    fields: tuple[Path, ...]
    ends_lines: bool = False  # each line ends with a newline: what lacks it is a piece
    in_order: bool = True  # the records stand in the order of their times


@dataclass(frozen=True, slots=True)
class Record:
    """One record: the line it stands in, the text that was logged, and what it tells."""

    number: int
    text: str
    told: dict[str, str]
    is_piece: bool = False
    is_torn: bool = False  # it begins as a record and ends within


def export_of(head: str, formats_in: Callable[[str], int]) -> Export | None:
    """Say how an export is written, from its first characters; None if it is none.

    `formats_in` says how many formats a text shows.
    """
    head = head[:LONGEST_HEAD]
    syntax, values = _values(head)
    if not values:
        return None
    texts: dict[Path, list[str]] = {}
    for value in values[:_SHOWN_RECORDS]:
        for path, text in _texts(value, ()):
            texts.setdefault(path, []).append(text)
    joined = {path: "\n".join(some) for path, some in texts.items()}
    scores = {path: formats_in(text) for path, text in joined.items() if " " in text}
    shown = sorted(
        (path for path, score in scores.items() if score),
        key=lambda path: (-scores[path], -len(joined[path])),
    )
    if not shown:
        return None
    root = _root(shown[0])
    fields = tuple(path[len(root) :] for path in shown if _root(path) == root)
    ends = [text.endswith("\n") for path in shown for text in texts[path]]
    export = Export(syntax, root, fields, 2 * sum(ends) > len(ends))
    records = [record for value in values for record in records_in(value, export, 0)]
    times = [parse_time(record.told["ts"]) for record in records if "ts" in record.told]
    return replace(export, in_order=all(a <= b for a, b in pairwise(times)))


def texts_of_head(head: str, export: Export) -> Iterator[str]:
    """Yield the lines that the head of an export holds."""
    _, values = _values(head[:LONGEST_HEAD])
    for value in values:
        yield from (record.text for record in records_in(value, export, 0))


def end_of_head(text: str, export: Export) -> int:
    """Return how much of a text `texts_of_head` looks at, in characters."""
    head = text[:LONGEST_HEAD]
    lines = head.split("\n", _SHOWN_RECORDS)
    by_line = export.syntax in {"jsonl", "csv"} and len(lines) > _SHOWN_RECORDS
    return len(head) - len(lines[-1]) if by_line else LONGEST_HEAD


def _root(path: Path) -> Path:
    """Return a path up to the last list it goes through: the way to the records."""
    return path[: len(path) - path[::-1].index(ITEM)] if ITEM in path else ()


def _values(head: str) -> tuple[Syntax, Sequence[Any]]:
    """Return the records of the head of a file: objects of lines, documents, or rows of CSV."""
    head = below_banner(head)
    if head.lstrip()[:1] in {"{", "["} or _TAGGED.match(head):
        lines = [line for line in head.split("\n")[:_SHOWN_RECORDS] if line.strip()]
        objects = [value for line in lines if (value := object_of(line)) is not None]
        # The last line may be cut.
        if objects and len(objects) >= len(lines) - 1 - len(lines) // 10 and len(lines) > 1:
            return "jsonl", objects
        if lines and len(lines) == 1 and objects and not _holds_items(objects[0]):
            return "jsonl", objects
        return "json", [document.value for document in documents(head)]
    if _JOURNAL.match(head):
        lines = head.split("\n")
        return "journal", [entry for _, entry in journal_entries(enumerate(lines, 1))]
    return "csv", list(_rows(head.split("\n")[:_SHOWN_RECORDS]))


def object_of(line: str) -> Any:
    """Return the object that a line is, None if it is none."""
    # Fluentd's files: time, tag and record.
    tagged = _TAGGED.fullmatch(line)
    try:
        value = loads(line if tagged is None else tagged[2])
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    return value if tagged is None else {"time": tagged[1], **value}


def _holds_items(value: Any) -> bool:
    return any(ITEM in path for path, _ in _texts(value, ()))


def _rows(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV whose header names a field that an export has."""
    for _, row in csv_rows(lines):
        yield row


def journal_entries(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line at which each entry of `journalctl -o export` ends, and its fields."""
    entry: dict[str, str] = {}
    number = 0
    for number, line in lines:
        name, is_field, text = line.partition("=")
        if is_field:
            entry[name] = text
        elif not line.strip() and entry:
            yield number, entry
            entry = {}
    if entry:
        yield number, entry


def csv_rows(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line at which each row of an export ends, and its cells; none of any other CSV."""
    held = iter(lines)
    header = next((line for line in held if line.strip()), "").strip()
    delimiter = max(",\t;", key=header.count)
    try:
        names = next(csv.reader([header], delimiter=delimiter), [])
    except csv.Error:
        return
    if len(names) < 2 or not all(_COLUMN.fullmatch(name) for name in names):
        return
    if not any(meaning_of(name) for name in names):
        return
    reader = csv.reader(held, delimiter=delimiter)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error:
            cells = [""]
        if cells is None:
            return
        if cells:
            yield reader.line_num + 1, dict(zip(names, cells, strict=False))


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the texts below a value, each with its path."""
    if isinstance(value, str):
        inner = _document_in(value)
        if inner is None:
            yield path, value
        elif len(path) < _DEEPEST:
            yield from _texts(inner, (*path, INSIDE))
        return
    for step, below in _children(value):
        if len(path) < _DEEPEST:
            yield from _texts(below, (*path, step))


def _document_in(text: str) -> Any:
    """Return what a text holds that is a JSON object itself."""
    stripped = text.strip()
    return object_of(stripped) if stripped[:1] == "{" and stripped[-1:] == "}" else None


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    value = _plain(value)
    if isinstance(value, dict):
        for name, below in value.items():
            yield str(name), below
    elif isinstance(value, list):
        for below in value:
            yield ITEM, below


def _plain(value: Any) -> Any:
    """Write the ways of writing an object as an object.

    `[{"field": "a", "value": "b"}]`, `["a:b"]`, `[time, line]` of Loki, and rows beside their
    columns; the bytes of a text as the text.
    """
    if isinstance(value, dict) and isinstance(value.get("rows"), list):
        columns = value.get("columns")
        names = [c.get("name") if isinstance(c, dict) else c for c in columns or ()]
        if names and all(isinstance(name, str) for name in names):
            rows = [
                dict(zip(names, row, strict=False)) if isinstance(row, list) else row
                for row in value["rows"]
            ]
            return {**value, "rows": rows}
    if isinstance(value, dict):
        return {k: _text_of_bytes(v) if k == "MESSAGE" else v for k, v in value.items()}
    if not isinstance(value, list) or not value:
        return value
    if all(isinstance(item, dict) and item.keys() >= {"field", "value"} for item in value):
        return {str(item["field"]): item["value"] for item in value}
    if all(isinstance(item, str) and _NAMED.fullmatch(item) for item in value):
        return dict(item.split(":", 1) for item in value)
    if len(value) in {2, 3} and isinstance(value[1], str) and _MOMENT.match(str(value[0])):
        return {"timestamp": value[0], "line": value[1]}
    return value


def _text_of_bytes(value: Any) -> Any:
    """Return the text that journald writes as a list of bytes, where it holds colours."""
    if isinstance(value, list) and all(isinstance(b, int) and 0 <= b < 256 for b in value):
        return bytes(value).decode("utf-8", "replace")
    return value


def records_in(value: Any, export: Export, number: int) -> Iterator[Record]:
    """Yield the records below a value; `number` is the line they stand in.

    One that has none of the fields is given as it is: it is not read, but counted.
    """
    for item, above in _items(value, export.root, ()):
        found = (_record(item, path, number, above) for path in export.fields)
        record = next(filter(None, found), None)
        yield record or Record(number, json.dumps(item), {})


def _items(value: Any, root: Path, above: _Scopes) -> Iterator[tuple[Any, _Scopes]]:
    """Yield the items at a path, each with the fields of the objects it lies in."""
    if not root:
        yield value, above
        return
    step, rest = root[0], root[1:]
    value = _inside(value) if step == INSIDE else _plain(value)
    if step == INSIDE:
        yield from _items(value, rest, above)
    elif step == ITEM and isinstance(value, list):
        for item in value:
            yield from _items(item, rest, above)
    elif isinstance(value, dict) and step in value:
        fields = tuple(_fields(value, "", 0))
        yield from _items(value[step], rest, (fields, *above))


def _record(item: Any, path: Path, number: int, above: _Scopes) -> Record | None:
    """Return the record of an item, None if it lacks the field."""
    value = item
    for step in path:
        value = _inside(value) if step == INSIDE else _plain(value)
        if step == INSIDE:
            # Some lines are JSON, the others are plain.
            above = (tuple(_fields(value, "", 0)), *above) if isinstance(value, dict) else above
        elif isinstance(value, dict):
            value = value.get(step)
    if not isinstance(value, str):
        return None
    plain = _plain(item)
    own = tuple(_fields(plain, "", 0)) if isinstance(plain, dict) else ()
    inner = above[0] if INSIDE in path and above else ()
    fields = [field for scope in (inner, own, *above) for field in scope]
    is_piece = any(name in _PIECE_FLAGS and text == "P" for name, text in own)
    return Record(number, value, fields_by_meaning(fields), is_piece)


def _inside(value: Any) -> Any:
    found = _document_in(value) if isinstance(value, str) else None
    return value if found is None else found


def _fields(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the plain fields below an object, nearest first; what its lists hold is another's."""
    nested: list[tuple[str, Any]] = []
    for name, below in value.items():
        here = f"{path}.{name}" if path else str(name)
        below = _plain(below)
        if isinstance(below, dict):
            nested.append((here, below))
        elif not isinstance(below, list):
            yield here, below
    for here, below in nested:
        if depth < _DEEPEST:
            yield from _fields(below, here, depth + 1)
