"""Asking the store: the questions of `queries/`, and statements of the user's own."""

import difflib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from fabricobs import content
from fabricobs.store.session import QueryError, check_read_only, open_session

_HEADER = re.compile(r"^-- ?(\w+): ?(.*)$")
_MOST_ROWS_SHOWN = 200
_WIDE_OUTPUT = 250


@dataclass(frozen=True, slots=True)
class Question:
    """One question: its text, its columns with units, an example of use, and its SQL."""

    name: str
    question: str
    columns: tuple[tuple[str, str], ...]
    example: str
    sql: str


def questions(extra: Sequence[Path] = ()) -> dict[str, Question]:
    """Load every question, the user's folders last, by name."""
    found = content.files("queries", ".sql", extra)
    return {name: load_question(name, p) for name, p in found.items() if "/" not in name}


def find_question(name: str, extra: Sequence[Path] = ()) -> Question:
    """Return one question; QueryError names the nearest if there is none of that name."""
    known = questions(extra)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else "; `fabricobs query --list` shows them"
        raise QueryError(f"no question {name!r}{hint}")
    return known[name]


def load_question(name: str, path: Path) -> Question:
    """Read a query file: header lines `question:`, `columns:` with indented names, `example:`."""
    text = path.read_text(encoding="utf-8")
    question = example = section = ""
    columns: list[tuple[str, str]] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        header = _HEADER.match(line)
        if header is not None:
            section = header[1]
            if section == "question":
                question = header[2].strip()
            elif section == "example":
                example = header[2].strip()
        elif section == "columns" and line.startswith("--   "):
            column, _, meaning = line[5:].strip().partition(" ")
            columns.append((column, meaning.strip()))
        elif section == "question":
            question += " " + line[2:].strip()
    return Question(name, question, tuple(columns), example, text)


def run_statement(
    sql: str, store: Path, output: str, out: Path | None, extra: Sequence[Path] = ()
) -> None:
    """Run a reading statement and print its rows, or write them to `out`.

    Raises QueryError for a statement that writes, does not parse or fails.
    """
    connection = open_session(store, sql, extra)
    check_read_only(connection, sql)
    try:
        rows = connection.sql(sql)
        if rows is None:
            raise QueryError("the statement gives no rows")
        _write(rows, output, out)
    except duckdb.Error as error:
        raise QueryError(f"the statement failed: {error}") from error


def _write(rows: duckdb.DuckDBPyRelation, output: str, out: Path | None) -> None:
    if output == "table" and out is None:
        rows.show(
            max_rows=_MOST_ROWS_SHOWN, max_width=None if sys.stdout.isatty() else _WIDE_OUTPUT
        )
        return
    if output not in {"csv", "json", "parquet"}:
        raise QueryError(f"--format {output}: use table, csv, json or parquet")
    target = out if out is not None else Path("/dev/stdout")
    if output == "parquet":
        if out is None and sys.stdout.isatty():
            raise QueryError("parquet is binary: give --out FILE or a pipe")
        _write_parquet(rows, out)
    elif output == "csv":
        rows.write_csv(str(target))
    else:
        rows.query("answer", "SELECT * FROM answer")
        _write_json(rows, out)


def _write_parquet(rows: duckdb.DuckDBPyRelation, out: Path | None) -> None:
    import pyarrow.parquet as pq

    table = rows.to_arrow_table()
    if out is not None:
        pq.write_table(table, out)
    else:
        pq.write_table(table, sys.stdout.buffer)


def _write_json(rows: duckdb.DuckDBPyRelation, out: Path | None) -> None:
    """Write one JSON object a line: streams of any length, and every tool reads them."""
    import json

    names = rows.columns
    handle = out.open("w", encoding="utf-8") if out is not None else sys.stdout
    try:
        while chunk := rows.fetchmany(10_000):
            for row in chunk:
                handle.write(json.dumps(dict(zip(names, row, strict=True)), default=str) + "\n")
    finally:
        if out is not None:
            handle.close()
