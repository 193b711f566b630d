"""The verbs that ask the store: SQL, the questions ready made, what changed, what there is."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricobs.printing import show, show_data
from fabricobs.verbs.shared import (
    AllowFilesOption,
    ConfigOption,
    ContentOption,
    OutOption,
    RowsOption,
    StoreOption,
    TextOption,
    allowed_files,
    check_target,
    check_text_format,
    configured_basics,
    fail,
    require_store,
)

if TYPE_CHECKING:
    from fabricobs.config.basics import Basics


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
    files = allowed_files(allow_files)
    site = configured_basics(config, {"store": store, "content": content})
    require_store(site.store)
    if statement is None and out is None and sys.stdin.isatty() and sys.stdout.isatty():
        from fabricobs.shell.loop import run_shell

        run_shell(site.store, format or "table", site.content, site=site.site, files=files)
        return
    _ask(_statement(statement), site, format, out, files)


def query(
    name: Annotated[str | None, typer.Argument(help="Name of a prepared query.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the prepared queries.")] = False,
    store: StoreOption = None,
    format: RowsOption = None,
    out: OutOption = None,
    allow_files: AllowFilesOption = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Run a prepared query of queries/."""
    from fabricobs.ask import find_question, questions

    site = configured_basics(config, {"store": store, "content": content})
    if list_ or name is None:
        for question in questions(site.content).values():
            show(f"{question.name:34} {question.question}")
        return
    require_store(site.store)
    _ask(find_question(name, site.content).sql, site, format, out, allowed_files(allow_files))


def compare(
    a: Annotated[
        str, typer.Argument(help="A job, a time window FROM..TO in UTC, or steps:FIRST..LAST.")
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
    from fabricobs.diagnosis.comparison import compare as run
    from fabricobs.report.comparison import comparison_json, comparison_text
    from fabricobs.store.compaction import reading

    check_text_format(format)
    site = configured_basics(config, {"store": store, "content": content})
    require_store(site.store)
    with reading(site.store):
        compared = run(a, b, site.store, job, site.content, site=site.site)
    show(comparison_json(compared) if format == "json" else comparison_text(compared))


def schema(
    table: Annotated[str | None, typer.Argument(help="Print only this table.")] = None,
    views: Annotated[
        bool,
        typer.Option("--views", help="Print SQL that creates the views in a plain duckdb shell."),
    ] = False,
    store: StoreOption = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Print the tables and their columns with type, unit and meaning."""
    from fabricobs.store.tables import TABLES

    site = configured_basics(config, {"store": store, "content": content})
    if views:
        from fabricobs.store.session import init_script

        require_store(site.store)
        show_data(init_script(site.store.absolute(), site.content), end="")
        return
    if table is not None and table not in TABLES:
        fail(f"no table {table!r}; one of {', '.join(TABLES)}")
    for name, described in TABLES.items():
        if table in {None, name}:
            show(f"{name}: {described.row} (from {described.source})")
            for column in described.columns:
                unit = f" [{column.unit}]" if column.unit else ""
                show(f"  {column.name:30} {column.type:20} {column.meaning}{unit}")


def _statement(given: str | None) -> str:
    """Return the SQL meant by the argument: itself, the content of a file, or standard input."""
    if given is None or given == "-":
        if given is None and sys.stdin.isatty():
            fail("give a statement, a file that holds one, or - for standard input")
        return sys.stdin.read()
    if given.endswith(".sql"):
        path = Path(given)
        if not path.is_file():
            fail(f"{path}: no such file")
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            fail(f"{path}: not UTF-8 (byte {error.start})")
    return given


def _ask(
    statement: str, site: "Basics", format: str | None, out: Path | None, files: list[Path]
) -> None:
    from fabricobs.ask import output_of, run_statement

    check_target("--out", out)
    output = output_of(format, out)
    from fabricobs.store.compaction import reading

    with reading(site.store):
        run_statement(statement, site.store, output, out, site.content, site=site.site, files=files)
