"""Trying a format on a file, and beginning a new one: for whoever writes definitions."""

import json
import re
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

from fabricobs.errors import UserError
from fabricobs.formats.context import Context
from fabricobs.formats.documents.jsontext import loads
from fabricobs.formats.identity.naming import identity_of
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import Catalogue, Recognised
from fabricobs.formats.records.csv_records import split_header
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.source import SourceError, read_ends

_SAMPLE_LINES = 8
_RULER = re.compile(r"^[-=]{3,}(?: +[-=]{3,})+\s*$")


@dataclass(frozen=True, slots=True)
class Trial:
    """What a format made of a file: rows by table without their null columns, and the account."""

    rows: dict[str, list[dict[str, Any]]]
    tally: Tally
    problem: str | None


def try_format(name: str, path: Path, catalogue: Catalogue) -> Trial:
    """Read a file with one format, whatever it is recognised as; UserError if that cannot be."""
    format_ = catalogue.formats.get(name)
    if format_ is None:
        raise UserError(f"no format {name!r}; `fabricobs formats` lists them")
    recognised = catalogue.recognise(_ends(path), str(path))
    syntax = recognised.syntax if format_ in recognised.formats else catalogue.syntax_of(format_)
    companions = catalogue.companions if format_.has_companions else ()
    below = f"{path.resolve().parent.name}/{path.name}"
    told = identity_of(below, UTC)
    context = Context("trial", identity=told if format_.takes_identity else told.of_log)
    context.from_path.update(format_.fields_of_path(str(path.resolve())) or {})
    rows = Rows()
    result = read_file(
        path, Recognised(syntax, (format_, *companions)), context, rows, lambda: None
    )
    tables: dict[str, list[dict[str, Any]]] = {}
    for table, part in rows.drain():
        given = tables.setdefault(table, [])
        for row in part.to_pylist():
            shown = {k: v for k, v in row.items() if v is not None and k != "file_id"}
            given.append(shown)
    result = result.with_note(rows.unfit.of_file("trial"))
    return Trial(tables, result.tally, result.problem)


def skeleton(name: str, path: Path) -> str:
    """Return the beginning of a definition whose sample is the head of a file."""
    text = _ends(path).decode("utf-8", "replace").replace("\r", "")
    lines = [line for line in text.split("\n") if line.strip()][:_SAMPLE_LINES]
    if not lines:
        raise UserError(f"{path}: empty: a definition needs a sample")
    body = _body(lines)
    sample = "\n".join(lines)
    quoted = f"'''\n{sample}\n'''" if "'''" not in sample else json.dumps(sample + "\n")
    return (
        f"# What the input is, who writes it, and what its numbers mean.\n"
        f'title = "{name}"\n{body}\n'
        "# Replace names and addresses: samples are public. Then say what rows they give.\n"
        f'[[sample]]\npath = "{path.name}"\ntext = {quoted}\n'
        "[sample.rows]\n# steps = [{ step = 1, step_time_ms = 812.5 }]\n"
    )


def _body(lines: list[str]) -> str:
    """Return reader, detection and rules as far as the first lines tell."""
    first = lines[0]
    if first.lstrip().startswith("{"):
        keys = _keys(first)
        return _record("jsonl", keys)
    if any(_RULER.match(line) for line in lines):
        header = next(a for a, b in zip(lines, lines[1:], strict=False) if _RULER.match(b))
        return (
            f"reader = \"table\"\n\n[detect]\ntext = '{_literal(header)}'\n\n"
            f"[[block]]\ntable = \"port_samples\"\nheader = '{header.strip()}'\n"
            "[block.columns]\n" + "".join(f'# "{word}" = "column"\n' for word in header.split())
        )
    columns, _ = split_header(first)
    if len(columns) >= 3 and all(re.fullmatch(r"[\w ./()%-]+", column) for column in columns):
        return _record("csv", columns)
    return (
        f"reader = \"lines\"\n\n[detect]\ntext = '{_literal(first)}'\n\n"
        "# {column:type} where a value stands, {:type} for one that is dropped; types are in the\n"
        f"# README of ingest/.\n[[line]]\ntemplate = {json.dumps(first.strip())}\n"
        '# table = "steps"\n'
    )


def _record(reader: str, keys: list[str]) -> str:
    columns = "".join(f'# "{key}" = "column"\n' for key in keys)
    return (
        f'reader = "{reader}"\n\n[detect]\ncolumns = []  # columns that must be filled\n\n'
        f'[[block]]\ntable = "steps"\n[block.columns]\n{columns}'
    )


def _keys(line: str) -> list[str]:
    try:
        record = loads(line)
    except ValueError:
        return []
    return list(record) if isinstance(record, dict) else []


def _literal(line: str) -> str:
    """Return an expression for the longest words of a line that are no numbers."""
    words = [word for word in line.split() if not any(c.isdigit() for c in word)]
    return re.escape(max(words, key=len, default=line.strip()[:20])).replace("'", ".")


def _ends(path: Path) -> bytes:
    try:
        return read_ends(path)
    except (SourceError, OSError) as error:
        raise UserError(f"{path}: {error}") from error
