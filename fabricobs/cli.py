"""The command line: each verb calls one function and prints what it gives.

Data goes to standard output, notes to standard error. Heavy libraries are imported by the verb that
uses them. What the verbs share is in `verbs.py`, those of operation are in `operate/commands.py`.
"""

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException

from fabricobs import __version__
from fabricobs.errors import UserError
from fabricobs.operate import commands
from fabricobs.verbs import (
    UNKNOWN,
    ConfigOption,
    ContentOption,
    FailOnOption,
    JobOption,
    StoreOption,
    ZoneOption,
    check_fail_on,
    check_inputs,
    configured,
    exit_code,
    fail,
    require_store,
)

if TYPE_CHECKING:
    from fabricobs.config.schema import Config
    from fabricobs.diagnosis.findings import Diagnosis

INTERRUPTED = 130

app = typer.Typer(
    name="fabricobs",
    help="Why is this training run slow? Reads NCCL logs, switch and NIC counters and step times.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def ingest(
    logs: Annotated[list[Path], typer.Argument(help="Files and directories to read.")],
    store: StoreOption = None,
    job: JobOption = None,
    tz: ZoneOption = None,
    content: ContentOption = None,
    workers: Annotated[int, typer.Option(help="Processes that read; 0: one a core.")] = 0,
    config: ConfigOption = None,
) -> None:
    """Read logs into the store. Reading the same again changes nothing."""
    import os

    from fabricobs.ingest import ingest as run
    from fabricobs.planning import Options
    from fabricobs.report.progress import ProgressBar
    from fabricobs.report.terminal import ingest_table
    from fabricobs.store.parts import Store

    options = {"store": store, "job": job, "tz": tz, "content": content}
    site = configured(config, options)
    inputs = logs if site.host_map is None else [*logs, site.host_map]
    check_inputs(inputs)
    bar = ProgressBar()
    try:
        report = run(
            inputs,
            Store(site.store),
            Options(site.job, site.tz, site.content),
            workers=workers or os.cpu_count() or 1,
            progress=bar,
        )
    finally:
        bar.close()
    print(ingest_table(report))
    if not report.outcomes:
        fail(f"nothing to read: no file below {', '.join(map(str, logs))}")
    for outcome in report.problems:
        print(f"fabricobs: {outcome.path}: {outcome.problem}", file=sys.stderr)
    if not any(outcome.formats for outcome in report.outcomes):
        fail("no file shows a format that fabricobs knows; `fabricobs formats` lists them")
    if report.problems:
        partly = all(outcome.formats for outcome in report.problems)
        raise typer.Exit(1 if partly else UNKNOWN)


@app.command()
def sql(
    statement: Annotated[
        str | None, typer.Argument(help="SQL, a file that holds it, or - for standard input.")
    ] = None,
    store: StoreOption = None,
    format: Annotated[str, typer.Option(help="table, csv, json or parquet.")] = "table",
    out: Annotated[Path | None, typer.Option(help="Write here instead.")] = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Ask the store in DuckDB SQL: every table and view of `fabricobs schema`."""
    site = configured(config, {"store": store, "content": content})
    require_store(site.store)
    _ask(_statement(statement), site, format, out)


@app.command()
def query(
    name: Annotated[str | None, typer.Argument(help="Name of a question.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the questions.")] = False,
    store: StoreOption = None,
    format: Annotated[str, typer.Option(help="table, csv, json or parquet.")] = "table",
    out: Annotated[Path | None, typer.Option(help="Write here instead.")] = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Ask one of the questions in queries/."""
    from fabricobs.ask import find_question, questions

    site = configured(config, {"store": store, "content": content})
    if list_ or name is None:
        for question in questions(site.content).values():
            print(f"{question.name:34} {question.question}")
        return
    require_store(site.store)
    _ask(find_question(name, site.content).sql, site, format, out)


@app.command()
def diagnose(
    store: StoreOption = None,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
    fail_on: FailOnOption = "low",
    window: Annotated[
        str | None, typer.Option(help="Judge so much before the newest data, as 6h; else all.")
    ] = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Judge the store: the verdict, six answers and the findings."""
    from fabricobs.report.documents import diagnosis_json
    from fabricobs.report.history import keep_findings
    from fabricobs.report.terminal import diagnosis_text

    if format not in {"text", "json"}:
        fail(f"--format {format}: use text or json")
    check_fail_on(fail_on)
    site = configured(config, {"store": store, "content": content, "watch.window": window})
    found, _ = _diagnose(site, windowed=window is not None)
    print(diagnosis_json(found) if format == "json" else diagnosis_text(found))
    try:
        keep_findings(found, site.store)
    except OSError as error:
        print(f"fabricobs: findings not kept in {site.store}: {error.strerror}", file=sys.stderr)
    raise typer.Exit(exit_code(found, fail_on))


@app.command()
def report(
    store: StoreOption = None,
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("fabricobs-report.html"),
    window: Annotated[
        str | None, typer.Option(help="Judge so much before the newest data, as 6h; else all.")
    ] = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Write the diagnosis as one HTML file that needs no network."""
    from fabricobs.report.page import write_page
    from fabricobs.store.exchange import reading

    site = configured(config, {"store": store, "content": content, "watch.window": window})
    found, since = _diagnose(site, windowed=window is not None)
    with reading(site.store):
        write_page(found, site.store, out, site.content, since=since, site=site.site)
    print(out)


app.command()(commands.watch)
app.command()(commands.prune)
app.command()(commands.schedule)
app.command()(commands.config)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where store and report go.")] = Path("fabricobs-demo"),
) -> None:
    """Ingest the sample cluster that comes along, judge it and write its report."""
    from fabricobs.demo import run_demo

    run_demo(out)


@app.command()
def simulate(
    directory: Annotated[Path, typer.Argument(help="Where the logs and answer.json go.")],
    healthy: Annotated[bool, typer.Option("--healthy", help="The same run without fault.")] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 20260302,
) -> None:
    """Write the logs of a simulated cluster whose fault is known."""
    from fabricobs.simulate.sample import write_sample

    write_sample(directory, fault=not healthy, seed=seed)
    print(directory)


formats_app = typer.Typer(help="List the formats, try one, or begin a new one.")
app.add_typer(formats_app, name="formats")


@formats_app.callback(invoke_without_command=True)
def formats(
    context: typer.Context, content: ContentOption = None, config: ConfigOption = None
) -> None:
    """List the formats fabricobs reads."""
    from fabricobs.formats.definition import load_definitions

    if context.invoked_subcommand is None:
        site = configured(config, {"content": content})
        for name, definition in load_definitions(site.content).items():
            print(f"{name:28} {definition.title}")


@formats_app.command("try")
def formats_try(
    name: Annotated[str, typer.Argument(help="The format.", metavar="FORMAT")],
    file: Annotated[Path, typer.Argument(help="A file to read with it.")],
    content: ContentOption = None,
    config: ConfigOption = None,
    most: Annotated[int, typer.Option(help="Rows shown of each table.")] = 20,
) -> None:
    """Show the rows a format makes of a file, and the lines it leaves."""
    from fabricobs.formats.catalogue import load_catalogue
    from fabricobs.formats.trial import try_format
    from fabricobs.report.terminal import trial_text

    if not file.is_file():
        fail(f"{file}: no such file")
    site = configured(config, {"content": content})
    trial = try_format(name, file, load_catalogue(site.content))
    print(trial_text(trial, most))
    if not trial.rows or trial.problem:
        raise typer.Exit(UNKNOWN)


@formats_app.command("new")
def formats_new(
    name: Annotated[str, typer.Argument(help="Name of the new format.")],
    file: Annotated[Path, typer.Argument(help="A file of it: its head becomes the sample.")],
    content: Annotated[
        Path, typer.Option("--content", help="Folder of yours; the file goes to its ingest/.")
    ] = Path(),
) -> None:
    """Write the beginning of a definition, with the head of a file as its sample."""
    from fabricobs.formats.trial import skeleton

    if not file.is_file():
        fail(f"{file}: no such file")
    if not name.isidentifier():
        fail(f"{name}: a format's name is letters, digits and underscores")
    target = content / "ingest" / f"{name}.toml"
    if target.exists():
        fail(f"{target}: is there already")
    text = skeleton(name, file)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    print(f"{target}: fill in columns and rows, then `fabricobs check --content {content}`")


@app.command()
def check(content: ContentOption = None, config: ConfigOption = None) -> None:
    """Check that every definition, query and model of the content is sound."""
    from fabricobs.soundness import check_content

    mistakes = list(check_content(configured(config, {"content": content}).content))
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    if mistakes:
        raise typer.Exit(UNKNOWN)
    print("content is sound")


@app.command()
def schema(
    table: Annotated[str | None, typer.Argument(help="One table only.")] = None,
    views: Annotated[bool, typer.Option("--views", help="SQL for a plain duckdb shell.")] = False,
    store: StoreOption = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Print the tables and their columns, with type, unit and meaning."""
    from fabricobs.store.tables import TABLES

    if views:
        from fabricobs.store.session import init_script

        site = configured(config, {"store": store, "content": content})
        require_store(site.store)
        print(init_script(site.store.absolute(), site.content), end="")
        return
    if table is not None and table not in TABLES:
        fail(f"no table {table!r}; one of {', '.join(TABLES)}")
    for name, described in TABLES.items():
        if table in {None, name}:
            print(f"{name}: {described.row} (from {described.source})")
            for column in described.columns:
                unit = f" [{column.unit}]" if column.unit else ""
                print(f"  {column.name:30} {column.type:20} {column.meaning}{unit}")


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
        return path.read_text(encoding="utf-8")
    return given


def _ask(statement: str, site: "Config", format: str, out: Path | None) -> None:
    from fabricobs.ask import run_statement
    from fabricobs.store.exchange import reading

    with reading(site.store):
        run_statement(statement, site.store, format, out, site.content, site=site.site)


def _diagnose(site: "Config", *, windowed: bool) -> "tuple[Diagnosis, datetime | None]":
    """Return the diagnosis, and where its window begins."""
    from fabricobs.diagnosis.run import diagnose as run
    from fabricobs.store.exchange import reading
    from fabricobs.store.session import newest_time

    require_store(site.store)
    with reading(site.store):
        since = None
        if windowed and site.watch.window is not None:
            newest = newest_time(site.store, datetime.max)
            since = None if newest is None else newest - site.watch.window
        found = run(
            site.store,
            site.content,
            since=since,
            site=site.site,
            thresholds=site.thresholds,
            gpu_hour_price=site.gpu_hour_price,
        )
    return found, since


@app.callback(invoke_without_command=True)
def _no_verb(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"fabricobs {__version__}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(UNKNOWN)


def main() -> None:
    """Run the command line; a mistake of the user is one line and exit code 3, no traceback."""
    try:
        code = app(standalone_mode=False)
    except TyperException as error:
        print(f"fabricobs: {error} (see `fabricobs --help`)", file=sys.stderr)
        code = UNKNOWN
    except typer.Abort:
        code = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except UserError as error:
        print(f"fabricobs: {error}", file=sys.stderr)
        code = UNKNOWN
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"fabricobs: {where}{error.strerror or error}", file=sys.stderr)
        code = UNKNOWN
    if code == INTERRUPTED:
        print(
            "fabricobs: stopped; what is committed stays, the same again goes on", file=sys.stderr
        )
    sys.exit(code if isinstance(code, int) else 0)
