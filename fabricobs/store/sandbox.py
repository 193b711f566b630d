"""A DuckDB that reaches only the directories it is given, and SQL that only reads.

Two locks, because either alone leaves a door: DuckDB's settings close everything outside the given
directories, but allow writing in them; the check of statements allows only what reads, but `SELECT`
has functions that read any file. `docs/security.md` lists the doors.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from fabricobs.exceptions import UserError
from fabricobs.resources import cores
from fabricobs.store.spill import spill_directory

if TYPE_CHECKING:
    import duckdb

_SETTINGS = {
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # Else a table that is not there is looked for among the variables of the caller.
    "python_enable_replacements": False,
}
_EXPLAIN = re.compile(r"\s*EXPLAIN(?:\s+ANALYZE\b)?(?:\s*\([\w\s,]*\))?", re.IGNORECASE)
# The nodes of a syntax tree as `json_serialize_sql` writes it. A `WITH` may hold INSERT or COPY.
_NODE = re.compile(r'"type":"(\w+_NODE)"')
_READING_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_FUNCTION = re.compile(r'"function_name":"(\w+)"')
# They run SQL that is text to the parser, or functions by their names.
_RUNS_TEXT = re.compile(r"query|json_execute_serialized_sql|\w*external_resource\w*", re.IGNORECASE)
_COPY = re.compile(r'[^\w"]*copy\b', re.IGNORECASE)
_LAST_WORD = re.compile(r"\w+(?=\W*$)")


class QueryError(UserError):
    """A statement that cannot be run; the text is for the user."""


class ParseError(QueryError):
    """A text that is no SQL."""


def connect(
    directories: Sequence[Path], limits: Mapping[str, str | int] | None = None
) -> "duckdb.DuckDBPyConnection":
    """Open an in-memory DuckDB that reaches files below `directories` only, and stays so.

    `limits` are settings of its memory and threads (`memory.limits`).
    """
    import duckdb

    connection = duckdb.connect(
        ":memory:",
        config={
            **_SETTINGS,
            "temp_directory": str(spill_directory()),
            # DuckDB counts the machine's cores, not those a scheduler lets this process have.
            "threads": cores(),
            **(limits or {}),
        },
    )
    # In a notebook without ipywidgets there is no bar, and DuckDB refuses even to turn it off.
    with suppress(duckdb.InvalidInputException):
        # It would go to standard output, which is for data.
        connection.execute("SET enable_progress_bar = false")
    connection.execute(
        "SET TimeZone = 'UTC';"
        f"SET allowed_directories = [{', '.join(_allowed(directories))}];"
        "SET enable_external_access = false;"
        "SET lock_configuration = true;"
    )
    return connection


def _allowed(directories: Sequence[Path]) -> list[str]:
    """Return the directories as literals, also as patterns name them: DuckDB compares the texts."""
    found: dict[str, None] = {}
    for directory in directories:
        path = str(directory.resolve())
        found.update(dict.fromkeys((literal(path), literal(escaped(path)))))
    return list(found)


def escaped(path: str) -> str:
    """Return a path as a pattern that matches nothing else."""
    return re.sub(r"([\[?*])", r"[\1]", path)


def literal(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def check_read_only(connection: "duckdb.DuckDBPyConnection", sql: str) -> None:
    """Raise QueryError unless `sql` is statements that only read, ParseError if it is no SQL."""
    import duckdb

    statements = _statements(connection, sql)
    if not statements:
        raise QueryError("no statement given")
    for statement in statements:
        kind, text = statement.type.name, statement.query
        if statement.type == duckdb.StatementType.EXPLAIN:
            prefix = _EXPLAIN.match(text)
            text = text[prefix.end() :] if prefix else ""
        elif statement.type != duckdb.StatementType.SELECT:
            raise _refused(kind)
        _check_tree(connection, text, kind)


def _statements(connection: "duckdb.DuckDBPyConnection", sql: str) -> "list[duckdb.Statement]":
    import duckdb

    try:
        return connection.extract_statements(sql)
    except duckdb.Error as error:
        raise ParseError(str(error)) from error


def _check_tree(connection: "duckdb.DuckDBPyConnection", text: str, kind: str) -> None:
    """Raise QueryError unless a statement is a SELECT all parts of which read."""
    ((tree,),) = connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
    nodes = set(_NODE.findall(tree))
    if not nodes:
        raise _refused(f"{kind} of anything but a SELECT")
    if not nodes <= _READING_NODES:
        writing = min(nodes - _READING_NODES)
        raise _refused(writing.removesuffix("_NODE").removesuffix("_QUERY"))
    for name in _FUNCTION.findall(tree):
        _check_function(name)


def check_script(connection: "duckdb.DuckDBPyConnection", sql: str) -> None:
    """Raise QueryError unless a script of views only creates, and copies nothing to files."""
    import duckdb

    for statement in _statements(connection, sql):
        if statement.type != duckdb.StatementType.CREATE:
            raise QueryError(f"{statement.type.name} is refused: a script of views may only CREATE")
    for token, following in pairwise([*_tokens(sql), ""]):
        if _COPY.match(token):
            raise QueryError("COPY is refused: a script of views may only CREATE")
        if following.startswith("(") and (name := _LAST_WORD.search(token)):
            _check_function(name[0])


def _tokens(sql: str) -> Iterator[str]:
    """Yield the tokens of a script but literals and comments, each with the blanks behind it."""
    import duckdb

    text = sql.encode()
    marks = duckdb.tokenize(sql)
    ends = [offset for offset, _ in marks[1:]] + [len(text)]
    for (begin, kind), end in zip(marks, ends, strict=True):
        if kind not in {duckdb.token_type.string_const, duckdb.token_type.comment}:
            yield text[begin:end].decode(errors="replace")


def _check_function(name: str) -> None:
    if _RUNS_TEXT.fullmatch(name):
        raise QueryError(f"function {name} is refused: it runs SQL made from text")


def _refused(kind: str) -> QueryError:
    return QueryError(
        f"{kind} is refused: the store is read-only here. "
        "Use SELECT; write results with --format and --out."
    )
