"""The commands that query the store: SQL, prepared queries, comparisons, jobs, tables."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricobs.cli.options import (
    AllowFilesOption,
    ConfigOption,
    ContentOption,
    OutOption,
    RowsOption,
    StoreOption,
    TextOption,
    check_text_format,
    given,
    opened,
)
from fabricobs.exceptions import UserError
from fabricobs.printing import show, show_data
from fabricobs.report.working import working
from fabricobs.validation import nearest

if TYPE_CHECKING:
    from fabricobs.api import OpenStore


def sql(
    statement: Annotated[
        str | None,
        typer.Argument(
            help="SQL, a file that holds it, or - for standard input. "
            "Without it: an interactive shell on a terminal, else standard input."
        ),
    ] = None,
    store: StoreOption = None,
    format: RowsOption = None,
    out: OutOption = None,
    allow_files: AllowFilesOption = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Run DuckDB SQL on the store; `fabricobs schema` lists tables and views.

    A statement can read the store and the directories of --allow-files, nothing else.
    """
    asked = opened(store, content, config, allow_files)
    if statement is None and out is None and sys.stdin.isatty() and sys.stdout.isatty():
        from fabricobs.shell.loop import run_shell

        run_shell(asked.session, asked.path, format or "table", asked.content)
        return
    _ask(_statement(statement), asked, format, out)


def query(
    name: Annotated[
        str | None, typer.Argument(help="Name of a prepared query; none: list them.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the prepared queries.")] = False,
    store: StoreOption = None,
    format: RowsOption = None,
    out: OutOption = None,
    allow_files: AllowFilesOption = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Run a prepared query of queries/."""
    from fabricobs.querying import find_query, stored_queries
    from fabricobs.report.layout import fitted

    if list_ or name is None:
        for query in stored_queries(given(config, store=store, content=content).content).values():
            show(fitted(f"{query.name:34}  {query.question}"))
        return
    asked = opened(store, content, config, allow_files)
    _ask(find_query(name, asked.content).sql, asked, format, out, keep=True)


def compare(
    a: Annotated[
        str,
        typer.Argument(help="A job, a day, a time window FROM..TO in UTC, or steps:FIRST..LAST."),
    ],
    b: Annotated[str, typer.Argument(help="The other side, in one of these forms.")],
    store: StoreOption = None,
    job: Annotated[
        str | None,
        typer.Option(help="The job of time windows and steps, if the store has several."),
    ] = None,
    format: TextOption = "text",
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Compare two jobs, time windows or step ranges and print what changed."""
    from fabricobs.report.comparison import comparison_json, comparison_text

    check_text_format(format)
    asked = opened(store, content, config)
    with working("comparing"):
        compared = asked.compare(a, b, job)
    show(comparison_json(compared) if format == "json" else comparison_text(compared))


def schema(
    table: Annotated[str | None, typer.Argument(help="Print only this table.")] = None,
    views: Annotated[
        bool,
        typer.Option("--views", help="Print SQL that creates the views in a plain duckdb shell."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the JSON Schema of `diagnose --format json`.")
    ] = False,
    store: StoreOption = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Print the tables and their columns with type, unit and meaning."""
    from fabricobs.report.layout import fitted
    from fabricobs.store.tables import TABLES

    if as_json:
        from fabricobs.report.contract import json_schema

        show_data(json.dumps(json_schema(), indent=2))
        return
    if views:
        from fabricobs.store.session import init_script

        asked = opened(store, content, config)
        show_data(init_script(asked.path.absolute(), asked.content), end="")
        return
    given(config, store=store, content=content)
    if table is not None and table not in TABLES:
        raise UserError(f"no table {table!r}{nearest(table, TABLES, else_all=True)}")
    for name, described in TABLES.items():
        if table in {None, name}:
            show(fitted(f"{name}: {described.row} (from {described.source})"))
            for column in described.columns:
                unit = f" [{column.unit}]" if column.unit else ""
                show(fitted(f"  {column.name:30}  {column.type:20}  {column.meaning}{unit}"))


def _statement(given: str | None) -> str:
    """Return the SQL meant by the argument: itself, the content of a file, or standard input."""
    if given is None or given == "-":
        if given is None and sys.stdin.isatty():
            raise UserError("give a statement, a file that holds one, or - for standard input")
        return sys.stdin.read()
    if given.endswith(".sql"):
        path = Path(given)
        if not path.is_file():
            raise UserError(f"{path}: no such file")
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 (byte {error.start})") from error
    return given


def _ask(
    statement: str, asked: "OpenStore", format: str | None, out: Path | None, *, keep: bool = False
) -> None:
    from fabricobs.output_files import check_target
    from fabricobs.querying import output_of, run_statement
    from fabricobs.store.reading import reading

    check_target("--out", out)
    output = output_of(format, out)
    with reading(asked.path):
        run_statement(partial(asked.session, keep=keep), statement, output, out)
