"""One JSON document whose parts hold steps: a list of records, or values by step.

A block's `where` names the key of such a part. Records fill columns by their keys; of an object of
numbers (`{"40": 2.5}`) the key itself is a template. A record or a number counts as a line.
`size.bytes` is a key within a key, `/args.0` one that holds for the whole document.
"""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from fabricobs.formats.mapping import ColumnMapping, Target
from fabricobs.formats.source import SourceError
from fabricobs.formats.whole import WholeFile


def read_document(file: WholeFile) -> None:
    """Read one document; SourceError if it is no JSON object."""
    try:
        document = json.loads(file.read_all().decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError) as error:
        file.tally.miss(1, f"{file.format.name}: {error}", "")
        raise SourceError(f"no JSON document: {error}") from error
    parts = document if isinstance(document, dict) else {}
    lines = count(1)
    for block, mapping in file.format.blocks:
        part = parts.get(block.where or "")
        records = part if isinstance(part, list) else []
        if isinstance(part, dict):
            records = [{key: value} for key, value in part.items()]
        shared = {
            path: _inside(parts, path[1:].split("."))
            for path in mapping.sources()
            if path.startswith("/")
        }
        common = _row(file, mapping, shared)
        for record in records:
            line = next(lines)
            if not isinstance(record, dict):
                file.tally.miss(line, f"{file.format.name}: no object", json.dumps(record))
                continue
            row = _row(file, mapping, dict(_flat(record)))
            if set(row) <= {"step"}:
                file.tally.skip()
            else:
                file.add(mapping.table, common | row, line)
                file.tally.read()
                file.flush()


def _inside(value: Any, path: list[str]) -> Any:
    """Follow keys and indexes into a document; None where they lead nowhere."""
    for part in path:
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return value


def _flat(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _row(file: WholeFile, mapping: ColumnMapping, record: dict[str, Any]) -> dict[str, Any]:
    """Return the columns a record fills."""
    row: dict[str, Any] = {}
    for key, value in record.items():
        target = mapping.resolve(key)
        if not isinstance(target, Target):
            if target is False:
                file.unused.add(key)
            continue
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            continue
        try:
            # repr keeps every digit of a number; a text may stand for one (newer Trainers).
            converted = target.convert(value if isinstance(value, str) else repr(value))
        except (ValueError, OverflowError):
            continue
        if converted != converted:  # NaN is no value
            converted = None
        row |= {target.column.name: converted, **dict(target.fields)}
    return row
