"""Checks that a definition reads its own samples, and that no rule of it lies idle."""

import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from fabricobs.formats.context import Context
from fabricobs.formats.definition import Sample
from fabricobs.formats.identity.naming import identity_of
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import Catalogue
from fabricobs.formats.recognition.format import Format, Recognised
from fabricobs.formats.rows import Rows, Tally


def check_format(format_: Format, catalogue: Catalogue) -> Iterator[str]:
    """Yield what is wrong with a definition's samples; nothing if they all hold."""
    for number, sample in enumerate(format_.definition.sample, 1):
        where = f"ingest/{format_.name}.toml: sample {number}"
        if not format_.definition.separator:
            recognised = catalogue.recognise(sample.data, f"/logs/{sample.path}")
            if format_ not in recognised.formats:
                names = ", ".join(f.name for f in recognised.formats) or "nothing"
                yield f"{where}: recognised as {names}; fix [detect]"
                continue
        rows, tally = read_sample(format_, sample, catalogue)
        for miss in tally.samples[sample.unparsed :]:
            yield f"{where}: line {miss[0]}: {miss[1]}: {miss[2][:80]}"
        if tally.unparsed != sample.unparsed:
            yield f"{where}: {tally.unparsed} lines unread, {sample.unparsed} expected"
        if tally.lines != tally.parsed + tally.ignored + tally.unparsed:
            yield f"{where}: {tally} does not add up"
        yield from (f"{where}: {text}" for text in _differences(sample, rows))


def read_sample(
    format_: Format, sample: Sample, catalogue: Catalogue
) -> tuple[dict[str, list[dict[str, Any]]], Tally]:
    """Read a sample as a file at its path would be read; rows by table, in order of lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sample")
        path.write_bytes(sample.data)
        shown = f"/logs/{sample.path}"
        recognised = catalogue.recognise(sample.data, shown)
        if format_ not in recognised.formats:
            recognised = Recognised(recognised.syntax, (format_,))
        told = identity_of(sample.path, UTC)
        context = Context("sample", identity=recognised.identity(told))
        for companion in recognised.formats:
            context.from_path.update(companion.fields_of_path(shown) or {})
        rows = Rows()
        result = read_file(path, recognised, context, rows, lambda: None)
    tables: dict[str, list[dict[str, Any]]] = {}
    for table, part in rows.drain():
        tables.setdefault(table, []).extend(_plain_rows(part))
    for table_rows in tables.values():
        table_rows.sort(key=lambda row: row.get("line") or 0)
    return tables, result.tally


def _plain_rows(part: pa.Table) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in part.to_pylist()
    ]


def _differences(sample: Sample, rows: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    for table in sorted(sample.rows.keys() | rows.keys()):
        expected = sample.rows.get(table, ())
        got = rows.get(table, [])
        if len(expected) != len(got):
            yield f"{table}: {len(got)} rows, {len(expected)} expected"
        for position, (want, have) in enumerate(zip(expected, got, strict=False), 1):
            for column, value in want.items():
                if not _equal(value, have.get(column)):
                    yield (
                        f"{table} row {position}: {column} is {have.get(column)!r}, not {value!r}"
                    )


def _equal(want: Any, have: Any) -> bool:
    if want == "":
        return have is None
    if isinstance(have, datetime):
        moment = datetime.fromisoformat(str(want))
        return moment.replace(tzinfo=UTC) == have.replace(tzinfo=UTC)
    return bool(want == have)
