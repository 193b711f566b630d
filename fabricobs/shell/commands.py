"""The commands of the shell: words that begin with a dot and ask about the store, not its rows."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from fabricobs.printing import show
from fabricobs.querying import OUTPUTS, check_output, find_query, stored_queries, write_rows
from fabricobs.store.sandbox import QueryError, check_read_only
from fabricobs.store.session import columns_by_name
from fabricobs.store.tables import TABLES
from fabricobs.store.views import derived

_PRINTED = tuple(name for name in OUTPUTS if name != "parquet")


def check_printed(output: str) -> None:
    """Raise QueryError unless rows can be printed so."""
    check_output(output)
    if output not in _PRINTED:
        raise QueryError(f"{output} is binary: use `fabricobs sql STATEMENT --format {output}`")


@dataclass(slots=True)
class Shell:
    """A shell over one session: where it asks, how it prints, and whether it goes on."""

    connection: duckdb.DuckDBPyConnection
    extra: Sequence[Path] = ()
    output: str = "table"
    leaving: bool = False
    columns: dict[str, list[tuple[str, str]]] = field(init=False)

    def __post_init__(self) -> None:
        self.columns = columns_by_name(self.connection)

    def run(self, text: str) -> None:
        """Run what was typed, a command or statements; QueryError says what is wrong with it."""
        typed = text.strip()
        if typed.startswith("."):
            self._run_command(typed)
        elif typed.strip(";").strip():
            check_read_only(self.connection, typed)
            for statement in self.connection.extract_statements(typed):
                write_rows(self.connection, statement.query, self.output)

    def _run_command(self, typed: str) -> None:
        name, _, argument = typed.rstrip(";").strip().partition(" ")
        command = COMMANDS.get(name)
        if command is None:
            close = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {close[0]}?" if close else ".help lists the commands"
            raise QueryError(f"no command {name}; {hint}")
        if command.argument and not argument.strip() and not command.optional:
            raise QueryError(f"{name} {command.argument}: which one?")
        command.run(self, argument.strip())


@dataclass(frozen=True, slots=True)
class Command:
    """One command: what it does, what its argument is called and may be, and its function."""

    meaning: str
    run: Callable[[Shell, str], None]
    argument: str = ""
    optional: bool = False
    choices: Callable[[Shell], Sequence[str]] = lambda shell: ()


def _tables(shell: Shell, _: str) -> None:
    said = derived(shell.extra)
    for name in sorted(shell.columns):
        kind = "table" if name in TABLES else "view"
        row = TABLES[name].row if name in TABLES else said.get(name, "").partition(". ")[0]
        show(f"{name:24} {kind:6} {row}")


def _columns(shell: Shell, table: str) -> None:
    if table not in shell.columns:
        close = difflib.get_close_matches(table, shell.columns, n=1)
        hint = f"did you mean {close[0]}?" if close else ".tables lists them"
        raise QueryError(f"no table {table}; {hint}")
    described = TABLES.get(table)
    for name, kind in shell.columns[table]:
        column = described.column(name) if described else None
        unit = f" [{column.unit}]" if column and column.unit else ""
        show(f"{name:30} {kind:20} {column.meaning if column else ''}{unit}".rstrip())


def _queries(shell: Shell, _: str) -> None:
    for query in stored_queries(shell.extra).values():
        show(f"{query.name:34} {query.question}")


def _query(shell: Shell, name: str) -> None:
    write_rows(shell.connection, find_query(name, shell.extra).sql, shell.output)


def _format(shell: Shell, output: str) -> None:
    if output:
        check_printed(output)
        shell.output = output
    show(f"rows are printed as {shell.output}")


def _help(_: Shell, __: str) -> None:
    show("A statement of DuckDB's SQL may go over several lines; it ends with a semicolon.")
    for name, command in COMMANDS.items():
        show(f"{f'{name} {command.argument}'.strip():18} {command.meaning}")
    show("Tab completes, Ctrl-R searches the history, Ctrl-C drops the line, Ctrl-D leaves.")


def _quit(shell: Shell, _: str) -> None:
    shell.leaving = True


COMMANDS: dict[str, Command] = {
    ".tables": Command("tables and views", _tables),
    ".columns": Command(
        "columns of one, with type, meaning and unit",
        _columns,
        argument="TABLE",
        choices=lambda shell: tuple(shell.columns),
    ),
    ".queries": Command("prepared queries", _queries),
    ".query": Command(
        "ask one of them",
        _query,
        argument="NAME",
        choices=lambda shell: tuple(stored_queries(shell.extra)),
    ),
    ".format": Command(
        "how rows are printed: table, csv or json",
        _format,
        argument="FORMAT",
        optional=True,
        choices=lambda shell: _PRINTED,
    ),
    ".help": Command("this list", _help),
    ".quit": Command("leave, as Ctrl-D does", _quit),
}
