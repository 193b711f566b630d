"""Querying the store: the stored queries of `queries/`, and statements of the user."""

import contextlib
import difflib
import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import duckdb

from fabricobs import content
from fabricobs.json_values import as_json
from fabricobs.output_files import replacing
from fabricobs.printing import escaped, show
from fabricobs.store.sandbox import QueryError, check_read_only
from fabricobs.store.session import rounded
from fabricobs.store.tables import TABLES
from fabricobs.store.views import derived
from fabricobs.waiting import Waiting

_NO_TABLE = re.compile(r"Table with name (\w+) does not exist")
_HEADER = re.compile(r"^-- ?(\w+): ?(.*)$")
_MOST_ROWS_SHOWN = 200
_WIDE_OUTPUT = 250
_CHUNK_ROWS = 10_000

# Opens a session with the views that a statement needs, all without one.
OpenSession = Callable[[str | None], duckdb.DuckDBPyConnection]

OUTPUTS = ("table", "csv", "json", "parquet")
# What a file is written as, by the ending of its name. A table is drawn for a screen and leaves out
# what does not fit: it is never a file.
_SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """One query: the question it answers, its columns with units, an example of use, its SQL.

    `lines` are tables and the condition of those of their rows whose lines of the input tell it,
    where not all rows of a part do. `counters` are those that tell it, the strongest first.
    `peers` are tables with the column by which a row is compared with those of peers.
    """

    name: str
    path: Path
    question: str
    columns: tuple[tuple[str, str], ...]
    example: str
    sql: str
    lines: tuple[tuple[str, str], ...] = ()
    peers: tuple[tuple[str, str], ...] = ()
    counters: tuple[str, ...] = ()


def stored_queries(extra: Sequence[Path] = ()) -> dict[str, StoredQuery]:
    """Load every query, the user's folders last, by name."""
    found = content.files("queries", ".sql", extra)
    return {name: load_query(name, p) for name, p in found.items() if "/" not in name}


def find_query(name: str, extra: Sequence[Path] = ()) -> StoredQuery:
    """Return one query; QueryError names the nearest if there is none of that name."""
    known = stored_queries(extra)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else "; `fabricobs query --list` shows them"
        raise QueryError(f"no query {name!r}{hint}")
    return known[name]


def load_query(name: str, path: Path) -> StoredQuery:
    """Read a query file: what its head says, by the fields of a stored query."""
    text = content.read_text(path)
    question = example = section = counters = ""
    indented: dict[str, list[tuple[str, str]]] = {"columns": [], "lines": [], "peers": []}
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
            elif section == "counters":
                counters = header[2]
        elif section in indented and line.startswith("--   "):
            name_, _, meaning = line[5:].strip().partition(" ")
            indented[section].append((name_, meaning.strip()))
        elif section == "question":
            question += " " + line[2:].strip()
    columns, lines, peers = map(tuple, indented.values())
    names = tuple(counters.replace(",", " ").split())
    return StoredQuery(name, path, question, columns, example, text, lines, peers, names)


def run_statement(session: OpenSession, sql: str, output: str, out: Path | None) -> None:
    """Run a reading statement and print its rows, or write them to `out`.

    `output` is one of OUTPUTS. A file is written whole or not at all.

    Raises QueryError for a statement that writes, does not parse or fails.
    """
    if output == "parquet" and out is None and sys.stdout.isatty():
        raise QueryError("parquet is binary: give --out FILE or a pipe")
    with Waiting("asking") as waiting:
        connection = session(sql)
        check_read_only(connection, sql)
        write_rows(connection, sql, output, out, waiting)


def rows_of(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Mapping[str, Any] | Sequence[Any] | None = None,
) -> duckdb.DuckDBPyRelation:
    """Return the rows of a statement; QueryError if it writes, does not parse or does not bind."""
    check_read_only(connection, sql)
    try:
        return connection.sql(sql, params=parameters)
    except duckdb.Error as error:
        raise QueryError(reason_of(error)) from error


def output_of(output: str | None, out: Path | None) -> str:
    """Return what rows are written as; QueryError where --format and --out do not agree."""
    if output is not None:
        check_output(output)
    if out is None:
        return output or "table"
    named = _SUFFIXES.get(out.suffix.lower())
    if output == "table":
        raise QueryError("--format table is for the screen: a file is csv, json or parquet")
    if output is not None and named not in {None, output}:
        raise QueryError(
            f"--out {out}: its name says {named}, --format says {output}; leave out one of them"
        )
    if output is None and named is None:
        known = ", ".join(_SUFFIXES)
        raise QueryError(f"--out {out}: no ending of {known}; say --format csv, json or parquet")
    return output or named or "csv"


def check_output(output: str) -> None:
    """Raise QueryError unless rows can be written so."""
    if output not in OUTPUTS:
        raise QueryError(f"--format {output}: use {', '.join(OUTPUTS[:-1])} or {OUTPUTS[-1]}")


def write_rows(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    output: str,
    out: Path | None = None,
    waiting: Waiting | None = None,
) -> None:
    """Run a statement known to read only and print its rows, or write them to `out`.

    `waiting` is over before the first row is written; without it, it begins here. Raises
    QueryError if the statement fails, KeyboardInterrupt if the user stops it.
    """
    try:
        with _opened(out) as file, waiting or Waiting("asking") as shown:

            def cursor() -> duckdb.DuckDBPyConnection:
                answer = connection.execute(sql)
                shown.over()
                return answer

            writers: dict[str, Callable[[], None]] = {
                "table": lambda: _write_table(connection.sql(sql), shown),
                "csv": lambda: _write_csv(cursor(), file),
                "json": lambda: _write_json(cursor(), file),
                "parquet": lambda: _write_parquet(connection.sql(sql), file, shown),
            }
            _stoppable(connection, writers[output])
    except duckdb.Error as error:
        raise QueryError(f"the statement failed: {reason_of(error)}") from error


def reason_of(error: duckdb.Error) -> str:
    """Return why a statement failed, of a table that is not there with the nearest one's name.

    DuckDB cannot name it: a session has but the tables and views a statement asks for.
    """
    missing = _NO_TABLE.search(str(error))
    if missing is None:
        return str(error)
    close = difflib.get_close_matches(missing[1], [*TABLES, *derived()], n=1)
    if not close:
        return str(error)
    return f"there is no table {missing[1]}; did you mean {close[0]}? `fabricobs schema` lists them"


def _stoppable(connection: duckdb.DuckDBPyConnection, work: Callable[[], None]) -> None:
    """Work beside the main thread, which alone hears Ctrl-C in the shell."""
    with ThreadPoolExecutor(1) as beside:
        done = beside.submit(work)
        try:
            done.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _opened(out: Path | None) -> contextlib.AbstractContextManager[Path | None]:
    """Give what to write: a file is written whole, a pipe or a device as it is."""
    if out is None or (out.exists() and not out.is_file()):
        return contextlib.nullcontext(out)
    return replacing(out)


def _write_table(rows: duckdb.DuckDBPyRelation, waiting: Waiting) -> None:
    drawn = io.StringIO()
    with contextlib.redirect_stdout(drawn):
        width = None if sys.stdout.isatty() else _WIDE_OUTPUT
        rounded(rows).show(max_rows=_MOST_ROWS_SHOWN, max_width=width)
    waiting.over()
    # DuckDB escapes controls of ASCII, no others.
    show(drawn.getvalue().rstrip("\n") + "\n", file=sys.stdout)


def _write_csv(cursor: duckdb.DuckDBPyConnection, out: Path | None) -> None:
    import csv

    with _target(out) as target:
        writer = csv.writer(target, lineterminator="\n")
        # A file or a program gets the exact data, a person what can be shown.
        shown = _shown_row if target.isatty() else tuple
        writer.writerow(shown(_names(cursor)))
        while chunk := cursor.fetchmany(_CHUNK_ROWS):
            writer.writerows(map(shown, chunk))


def _shown_row(row: Sequence[object]) -> tuple[object, ...]:
    return tuple(escaped(cell) if isinstance(cell, str) else cell for cell in row)


def _write_json(cursor: duckdb.DuckDBPyConnection, out: Path | None) -> None:
    """Write one JSON object a line: streams of any length, and every tool reads them."""
    import json

    names = _names(cursor)
    with _target(out) as target:
        while chunk := cursor.fetchmany(_CHUNK_ROWS):
            for row in chunk:
                told = dict(zip(names, map(as_json, row), strict=True))
                target.write(json.dumps(told, default=str, allow_nan=False) + "\n")


def _write_parquet(rows: duckdb.DuckDBPyRelation, out: Path | None, waiting: Waiting) -> None:
    import pyarrow.parquet as pq

    table = rows.to_arrow_table()
    waiting.over()
    pq.write_table(table, out if out is not None else sys.stdout.buffer)


def _names(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    return [str(column[0]) for column in cursor.description or ()]


@contextlib.contextmanager
def _target(out: Path | None) -> Iterator[TextIO]:
    """Open the file to write, or standard output."""
    if out is None:
        yield sys.stdout
    else:
        with out.open("w", encoding="utf-8") as file:
            yield file
