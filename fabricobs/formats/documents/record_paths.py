"""Paths to the records of a document: `communicators[].ranks[]`, `counts.{op}`, `..interfaces`.

`key[]` goes into every item of a list (or into the one object some tools write instead of a list of
one), `{op}` into every key of an object that the template fits, whose fields fill columns; an empty
path is the document itself, `[]` each item of a document that is a list, and two dots in front
(`..interfaces.{port}`) find the path wherever it lies, such as in an answer of an API.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fabricobs.formats.documents.kept_values import KeptValues
from fabricobs.formats.templates import Template, TemplateError, compile_template

_STEP = re.compile(r"(?P<key>[\w:-]*)(?P<items>\[\])?")
# A record, the items it lies in by their path, and the fields that keys of its path give.
Located = tuple[Any, dict[str, Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a path: a key, perhaps into each item of its list, or every key that fits."""

    key: str
    items: bool = False
    template: Template | None = None

    def fits(self, key: str) -> bool:
        """Say whether a key leads on."""
        return key == self.key if self.template is None else bool(self.template.pattern.match(key))


class RecordPath:
    """A compiled path to records."""

    def __init__(self, where: str, name: str) -> None:
        self.anywhere = where.startswith("..")
        self.steps = tuple(_step(text, name) for text in where.lstrip(".").split(".") if text)

    @property
    def fields(self) -> Iterator[tuple[str, str]]:
        """Yield the name and type of each field that its keys give."""
        for step in self.steps:
            if step.template is not None:
                yield from step.template.fields


def _step(text: str, name: str) -> _Step:
    if "{" in text:
        return _Step("", template=compile_template(text, default_type="text"))
    found = _STEP.fullmatch(text)
    if found is None:
        raise TemplateError(f"{name}: {text!r} is no step of a path: key, key[] or {{column}}")
    return _Step(found["key"], items=found["items"] is not None)


def located_records(
    document: Any, paths: Sequence[RecordPath], values: bool, kept: KeptValues
) -> Iterator[Located]:
    """Yield the records at some paths of a document; what the paths go through is noted in `kept`.

    Plain values below a key that fits a template are passed over unless `values`.
    """
    for path in paths:
        if not path.anywhere:
            yield from _records(document, path.steps, values, kept)
            continue
        first = path.steps[0]
        pending = [document]
        while pending:
            node = pending.pop()
            if isinstance(node, dict):
                if first.template is not None or first.key in node:
                    yield from _records(node, path.steps, values, kept)
                pending.extend(node.values())
            elif isinstance(node, list):
                pending.extend(node)


def _records(
    node: Any, steps: tuple[_Step, ...], values: bool, kept: KeptValues, path: str = ""
) -> Iterator[Located]:
    if not steps:
        yield node, {}, {}
        return
    step, rest = steps[0], steps[1:]
    if step.items and not step.key:
        for item in node if isinstance(node, list) else [node]:
            for record, above, given in _records(item, rest, values, kept, path):
                yield record, {path: item, **above}, given
        return
    if not isinstance(node, dict):
        return
    if step.template is not None:
        kept.add_data_keys(node, step.fits)
    if values and not rest:
        kept.add_values(node, step.fits)
    if step.template is not None:
        for key, value in node.items():
            if not values and not isinstance(value, dict | list):
                continue
            fields = _fields(step.template, str(key))
            if fields is None:
                continue
            for record, above, given in _records(value, rest, values, kept, path):
                yield record, above, {**fields, **given}
        return
    below = f"{path}.{step.key}"
    value = node.get(step.key)
    items = value if step.items and isinstance(value, list) else [value]
    for item in items:
        if item is not None:
            for record, above, given in _records(item, rest, values, kept, below):
                yield record, {below: item, **above}, given


def _fields(template: Template, key: str) -> dict[str, Any] | None:
    """Return the fields of a key by its template; None if it does not fit."""
    found = template.pattern.match(key)
    if found is None:
        return None
    try:
        return template.read(found)
    except ValueError:
        return None


def leaf_values(record: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a record by their path; `.` is a record that is a value itself."""
    if not isinstance(record, dict):
        yield path or ".", record
        return
    for key, value in record.items():
        yield from leaf_values(value, f"{path}.{key}" if path else str(key))


def value_above(above: dict[str, Any], key: str) -> Any:
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


def without_places(key: str) -> str:
    """Return a path from the top without the places in lists."""
    return ".".join(part for part in key.split(".") if not part.isdigit())
