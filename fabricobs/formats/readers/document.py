"""One JSON document whose parts hold steps: a list of records, or values by step.

A block's `where` names the key of such a part. Records fill columns by their keys; of an object of
numbers (`{"40": 2.5}`) the key itself is a template. A record or a number counts as a line.
"""

import json
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
        for record in records:
            line = next(lines)
            if not isinstance(record, dict):
                file.tally.miss(line, f"{file.format.name}: no object", json.dumps(record))
                continue
            row = _row(file, mapping, record)
            if row is None:
                file.tally.skip()
            else:
                file.add(mapping.table, row, line)
                file.tally.read()
                file.flush()


def _row(file: WholeFile, mapping: ColumnMapping, record: dict[str, Any]) -> dict[str, Any] | None:
    """Return the columns a record fills; None if it tells a step nothing."""
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
        row |= {target.column.name: converted, **dict(target.fields)}
    return row if set(row) - {"step"} else None
