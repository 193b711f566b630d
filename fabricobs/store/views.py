"""The scripts of `queries/views`: their texts, their statements, and those a question reaches."""

import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fabricobs import content
from fabricobs.store.counter_sql import FAMILIES, families_script, with_each_counter
from fabricobs.store.inspection import one_line

if TYPE_CHECKING:
    import duckdb

_CREATES = re.compile(r"create\s+(?:or\s+replace\s+)?(?:view|macro|table)\s+(\w+)", re.IGNORECASE)
_VIEW = re.compile(r"create\s+(?:or\s+replace\s+)?view\s+(\w+)", re.IGNORECASE)
_DERIVED = re.compile(
    r"((?:^--.*\n)*)^create\s+(?:or\s+replace\s+)?(?:view|table)\s+(\w+)",
    re.IGNORECASE | re.MULTILINE,
)
_WORD = re.compile(r"\w+")
# Samples are asked once for their rises, the others of the first two lines by one query or none,
# uplink_ports by two of few columns, told_status is nearly named_status, and few questions need the
# rows of NCCL by rank: to hold them costs more than to read them again.
_NEVER_KEPT = {
    *("error_rises", "rank_work", "operations_of_ranks", "communicator_ranks", "benchmark_rows"),
    *("perftest_rows", "process_ranks", "uplink_ports", "told_status"),
    *("port_samples", "priority_samples", "named_samples", "named_priority_samples"),
    *("env_by_rank", "nics_by_rank", "channels_by_rank", "events_by_rank"),
}


def view_scripts(extra: Sequence[Path] = ()) -> dict[str, str]:
    """Return the text of every view script by name, in the order they build on each other."""
    found = content.files("queries", ".sql", extra)
    return {FAMILIES: families_script()} | {
        name: with_each_counter(content.read_text(path))
        for name, path in found.items()
        if name.startswith("views/")
    }


def statements_of(
    connection: "duckdb.DuckDBPyConnection", name: str, text: str
) -> list["duckdb.Statement"]:
    """Return the statements of a script; ContentError where it is no SQL."""
    import duckdb

    try:
        return connection.extract_statements(text)
    except duckdb.Error as error:
        raise content.ContentError(f"queries/{name}.sql: {one_line(error)}") from error


def reached_scripts(sql: str, scripts: dict[str, str]) -> dict[str, str]:
    """Return the scripts that create a name which the SQL, or another of them, tells."""
    told = words_of(sql)
    reached = {}
    for name, text in reversed(scripts.items()):
        if any(created.lower() in told for created in _CREATES.findall(text)):
            reached[name] = text
            told |= words_of(text)
    return dict(reversed(reached.items()))


def reached_statements(
    sql: str, scripts: dict[str, list["duckdb.Statement"]], whole: Container[str]
) -> tuple[dict[str, list["duckdb.Statement"]], set[str]]:
    """Return the statements that create what the SQL reaches, by script, and all words told there.

    A script of `whole` is reached with all its statements or not at all. A statement that creates
    no view, macro or table stays.
    """
    told = words_of(sql)
    reached: dict[str, list[duckdb.Statement]] = {}
    for name, statements in reversed(scripts.items()):
        own = []
        for statement in reversed(statements):
            created = _CREATES.search(statement.query)
            if created is None or created[1].lower() in told:
                own.append(statement)
                told |= words_of(statement.query)
        if own:
            reached[name] = statements if name in whole else own[::-1]
    return dict(reversed(reached.items())), told


def words_of(sql: str) -> set[str]:
    """Return the words of a text in small letters: names of tables and views are among them."""
    return {word.lower() for word in _WORD.findall(sql)}


def kept(text: str) -> str:
    """Return a script, or statement, whose views are worked out once rather than each time."""

    def create(made: re.Match[str]) -> str:
        return made[0] if made[1] in _NEVER_KEPT else f"CREATE OR REPLACE TABLE {made[1]}"

    return _VIEW.sub(create, text)


def derived(extra: Sequence[Path] = ()) -> dict[str, str]:
    """Return what the comment above each view, and each table worked out, says of it."""
    found: dict[str, str] = {}
    for text in view_scripts(extra).values():
        for comment, name in _DERIVED.findall(text):
            lines = [line.removeprefix("--").strip() for line in comment.splitlines()]
            found[name] = " ".join(lines)
    return found
