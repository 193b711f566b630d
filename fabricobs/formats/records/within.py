"""Records of JSON that stand in a log, each at the end of a line, among lines of other kinds."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from fabricobs.formats.context import Context, column_names
from fabricobs.formats.documents.jsontext import loads
from fabricobs.formats.documents.kept_values import KeptValues
from fabricobs.formats.logs.lines import Outcome
from fabricobs.formats.records.json_records import value_at
from fabricobs.formats.records.sink import RecordFormat
from fabricobs.formats.records.values import from_json
from fabricobs.formats.rows import Rows
from fabricobs.formats.values import Unfit

# In the first so many lines of a log that could be records they are looked for.
_MOST_SHOWN = 20
# A file of records may have a torn line or two among its first ones; a log has more.
_FIRST_LINES, _MOST_TORN = 50, 0.1
_AT_END = re.compile(r"^[^{\n]*\{.*\}[ \t]*$", re.MULTILINE)


def records_shown(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects with which the first such lines of a text end."""
    for found in islice(_AT_END.finditer(text), _MOST_SHOWN):
        record = record_of(found[0])
        if record is not None:
            yield record


def is_log(text: str) -> bool:
    """Say whether lines of another kind stand among the first records, more than a torn one."""
    lines = [line for line in text.split("\n")[:_FIRST_LINES] if line.strip()]
    return _MOST_TORN * len(lines) < sum(not line.lstrip().startswith("{") for line in lines)


def record_of(line: str) -> dict[str, Any] | None:
    """Return the JSON object with which a line ends, behind whatever a logger writes; or None."""
    begin = line.find("{")
    text = line[begin:].rstrip()
    if begin < 0 or not text.endswith("}"):
        return None
    try:
        record = loads(text, strict=True)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


class RecordsWithin:
    """One format of records reading the lines of a log that are such records."""

    def __init__(self, record_format: RecordFormat, context: Context, rows: Rows) -> None:
        self._format = record_format
        self._context = context
        self._rows = rows
        self._block, mapping = record_format.blocks[0]
        self._sources = mapping.sources()
        self._paths = [(path.split("."), target) for path, target in self._sources.items()]

    def offer(self, line: str, number: int) -> Outcome | str:
        """Take a record with all that the format demands; its line may tell its time and rank."""
        record = record_of(line)
        table = self._block.table
        if record is None or table is None:
            return Outcome.NOT_MINE
        given, unfit = self._filled(record)
        if not given.keys() >= set(self._format.required):
            lacking = set(self._format.required) - given.keys() - unfit.keys()
            if lacking:
                return Outcome.NOT_MINE
            return f"{self._format.name}: " + "; ".join(f"{n} {v}" for n, v in unfit.items())
        for name, value in unfit.items():
            if name not in given:
                self._rows.unfit.add(self._context.file_id, number, name, value)
        row = self._context.base(table, self._format.name, snapshot=False)
        row.update((k, v) for k, v in self._block.set.items() if k in column_names(table))
        if "ts" in given:
            row["ts_source"] = self._block.set.get("ts_source", "inline")
        self._rows.add(table, {**row, **given, "line": number})
        self._drop_others(record)
        return Outcome.PARSED

    def _filled(self, record: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Unfit]]:
        """Return the columns that a record fills, and what does not fit; the first one counts.

        The sum of parts counts where nothing else gives the value.
        """
        given: dict[str, Any] = {}
        sums: dict[str, Any] = {}
        unfit: dict[str, Unfit] = {}
        for path, target in self._paths:
            if path[0] not in record:
                continue
            found = from_json(value_at(record, path), target, self._context.zone)
            if isinstance(found, Unfit):
                unfit.setdefault(target.column.name, found)
            elif found is not None and target.is_part:
                sums[target.column.name] = sums.get(target.column.name, 0.0) + found
            elif found is not None:
                given.setdefault(target.column.name, found)
        return {**sums, **given}, unfit

    def _drop_others(self, record: dict[str, Any]) -> None:
        kept = KeptValues()
        kept.add_record(record, self._sources.__contains__)
        self._context.drop_fields(kept.others(record))
