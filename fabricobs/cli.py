"""The command line: each verb calls one function and prints what it gives.

Data goes to standard output, notes to standard error. Exit codes follow the monitoring plug-ins:
0 nothing at or above --fail-on, 1 warning, 2 critical, 3 unknown (bad usage, unreadable input, not
enough data). Heavy libraries are imported by the verb that uses them.
"""

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException

from fabricobs import __version__, asking
from fabricobs.errors import UserError
from fabricobs.verbs import (
    DEFAULT_STORE,
    UNKNOWN,
    ContentOption,
    StoreOption,
    fail,
    require_store,
)

if TYPE_CHECKING:
    from fabricobs.diagnosis.findings import Diagnosis
    from fabricobs.inputs import IngestReport, Options

INTERRUPTED = 130

app = typer.Typer(
    name="fabricobs",
    help="Why is this training run slow? Reads NCCL logs, switch and NIC counters and step times.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

DEMO_SEED = 20260322


@app.command()
def ingest(
    logs: Annotated[list[Path], typer.Argument(help="Files and directories to read.")],
    store: StoreOption = DEFAULT_STORE,
    job: Annotated[str | None, typer.Option(help="Name of the job these logs are of.")] = None,
    tz: Annotated[str, typer.Option(help="Time zone of times that name none.")] = "UTC",
    content: ContentOption = None,
    workers: Annotated[int, typer.Option(help="Processes that read; 0: one a core.")] = 0,
) -> None:
    """Read logs into the store. Reading the same again changes nothing."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    from fabricobs import seen
    from fabricobs.inputs import Options, discover
    from fabricobs.report.account import ingest_table

    try:
        ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError):
        fail(f"--tz {tz}: no such time zone; use a name like UTC or Europe/Berlin")
    for path in logs:
        if not path.exists() and not path.is_symlink():
            fail(f"{path}: no such file or directory")
    options = Options(job, tz, tuple(content or ()))
    report = seen.unchanged(discover(logs, store), seen.load(store, options))
    if report is None:
        report = _read(logs, store, options, workers)
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


def _read(logs: list[Path], store: Path, options: "Options", workers: int) -> "IngestReport":
    """Ingest with a progress bar, where somebody sees it."""
    import os

    _keep_pandas_out()
    from fabricobs.ingest import ingest as run
    from fabricobs.store.parts import Store

    workers = workers or os.cpu_count() or 1
    if not sys.stderr.isatty():
        return run(logs, Store(store), options, workers=workers)
    from fabricobs.report.progress import ProgressBar

    bar = ProgressBar()
    try:
        return run(logs, Store(store), options, workers=workers, progress=bar)
    finally:
        bar.close()


def _keep_pandas_out() -> None:
    """Keep pyarrow from importing pandas, where installed, just to see that no list is a Series."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    class Absent:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "pandas":
                raise ModuleNotFoundError(name)

    absent = Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([])  # it looks once
    finally:
        sys.meta_path.remove(absent)


@app.command()
def sql(
    statement: Annotated[
        str | None,
        typer.Argument(
            help="SQL, a file that holds it, or - for standard input. "
            "Without it: a shell on a terminal, else standard input."
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    format: Annotated[str, typer.Option(help="table, csv, json or parquet.")] = "table",
    out: Annotated[Path | None, typer.Option(help="Write here instead.")] = None,
    content: ContentOption = None,
) -> None:
    """Ask the store in DuckDB SQL: every table and view of `fabricobs schema`."""
    from fabricobs.ask import run_statement

    require_store(store)
    if statement is None and out is None and sys.stdin.isatty() and sys.stdout.isatty():
        from fabricobs.shell.loop import run_shell

        run_shell(store, format, tuple(content or ()))
        return
    run_statement(_statement(statement), store, format, out, tuple(content or ()))


@app.command()
def query(
    name: Annotated[str | None, typer.Argument(help="Name of a question.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the questions.")] = False,
    store: StoreOption = DEFAULT_STORE,
    format: Annotated[str, typer.Option(help="table, csv, json or parquet.")] = "table",
    out: Annotated[Path | None, typer.Option(help="Write here instead.")] = None,
    content: ContentOption = None,
) -> None:
    """Ask one of the questions in queries/."""
    from fabricobs.ask import find_question, questions, run_statement

    extra = tuple(content or ())
    if list_ or name is None:
        for question in questions(extra).values():
            print(f"{question.name:34} {question.question}")
        return
    require_store(store)
    run_statement(find_question(name, extra).sql, store, format, out, extra)


@app.command()
def diagnose(
    store: StoreOption = DEFAULT_STORE,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
    fail_on: Annotated[
        str, typer.Option(help="Lowest severity that counts: low ... critical, or never.")
    ] = "low",
    content: ContentOption = None,
) -> None:
    """Judge the store: the verdict, six answers and the findings."""
    from fabricobs.report.documents import diagnosis_json
    from fabricobs.report.history import keep_findings
    from fabricobs.report.terminal import diagnosis_text

    if format not in {"text", "json"}:
        fail(f"--format {format}: use text or json")
    found = _diagnose(store, tuple(content or ()))
    print(diagnosis_json(found) if format == "json" else diagnosis_text(found))
    try:
        keep_findings(found, store)
    except OSError as error:
        print(f"fabricobs: findings not kept in {store}: {error.strerror}", file=sys.stderr)
    raise typer.Exit(_exit_code(found, fail_on))


app.command()(asking.explain)
app.command()(asking.compare)


@app.command()
def report(
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("fabricobs-report.html"),
    content: ContentOption = None,
) -> None:
    """Write the diagnosis as one HTML file that needs no network."""
    from fabricobs.report.page import write_page

    found = _diagnose(store, tuple(content or ()))
    write_page(found, store, out, tuple(content or ()))
    print(out)


@app.command()
def demo(
    scenario: Annotated[
        str | None, typer.Argument(help="A scenario of `fabricobs simulate --list`.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where store and report go.")] = Path("fabricobs-demo"),
    gpus: Annotated[int | None, typer.Option(help="Size of the simulated cluster.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same cluster.")] = DEMO_SEED,
) -> None:
    """Judge the sample cluster that comes along, or a simulated one, and write its report."""
    from fabricobs.demo import run_demo, run_scenario

    if scenario is None:
        run_demo(out)
    else:
        run_scenario(scenario, out, gpus=gpus, seed=seed)


@app.command()
def simulate(
    directory: Annotated[
        Path | None, typer.Argument(help="Where logs and answers are written.")
    ] = None,
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help="Names, or TOML files of yours; without: a practice set."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List scenarios and kinds of log.")] = False,
    cases: Annotated[int, typer.Option(help="Cases of the practice set.", min=1)] = 10,
    gpus: Annotated[int | None, typer.Option(help="Size of the cluster, a multiple of 8.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = DEMO_SEED,
    only: Annotated[list[str] | None, typer.Option(help="Kinds of log to write.")] = None,
    without: Annotated[list[str] | None, typer.Option(help="Kinds of log to leave out.")] = None,
) -> None:
    """Write the logs of simulated clusters whose faults are known, and the answers beside them."""
    from fabricobs.simulate.cases import choose_kinds, describe, write_case, write_practice
    from fabricobs.simulate.scenarios import load_scenario

    if list_:
        print(describe())
        return
    if directory is None:
        fail("give the directory to write to, or --list")
    kinds = choose_kinds(only or (), without or ())
    if not scenarios:
        write_practice(directory, cases=cases, seed=seed, gpus=gpus, kinds=kinds)
        print(f"{directory}: {cases} cases; the answers are in {directory / 'answers'}")
        return
    for name in scenarios:
        scenario = load_scenario(name).sized(gpus)
        folder = directory / scenario.name
        write_case(folder, scenario, seed=seed, kinds=kinds)
        print(folder)


bench_app = typer.Typer(help="Measure fabricobs itself.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")


@bench_app.command("diagnosis")
def bench_diagnosis(
    seeds: Annotated[int, typer.Option(help="Seeds a scenario.", min=1)] = 5,
    size: Annotated[int, typer.Option(help="GPUs of each cluster, a multiple of 8.")] = 128,
    scenario: Annotated[list[str] | None, typer.Option(help="Only these scenarios.")] = None,
    ablations: Annotated[
        bool, typer.Option(help="Judge each case from one kind of evidence alone too.")
    ] = True,
    tuning: Annotated[
        bool, typer.Option("--tuning", help="The seeds thresholds may be chosen on.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write every score as JSON lines.")] = None,
) -> None:
    """Score the diagnosis on simulated clusters whose faults are known."""
    from fabricobs.bench.scoreboard import bench

    print(bench(seeds, size, scenario or (), ablations=ablations, tuning=tuning, out=out))


formats_app = typer.Typer(help="List the formats, try one, or begin a new one.")
app.add_typer(formats_app, name="formats")


@formats_app.callback(invoke_without_command=True)
def formats(context: typer.Context, content: ContentOption = None) -> None:
    """List the formats fabricobs reads."""
    from fabricobs.formats.definition import load_definitions

    if context.invoked_subcommand is None:
        for name, definition in load_definitions(tuple(content or ())).items():
            print(f"{name:28} {definition.title}")


@formats_app.command("try")
def formats_try(
    name: Annotated[str, typer.Argument(help="The format.", metavar="FORMAT")],
    file: Annotated[Path, typer.Argument(help="A file to read with it.")],
    content: ContentOption = None,
    most: Annotated[int, typer.Option(help="Rows shown of each table.")] = 20,
) -> None:
    """Show the rows a format makes of a file, and the lines it leaves."""
    from fabricobs.formats.catalogue import load_catalogue
    from fabricobs.formats.trial import try_format
    from fabricobs.report.terminal import trial_text

    if not file.is_file():
        fail(f"{file}: no such file")
    trial = try_format(name, file, load_catalogue(tuple(content or ())))
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
def check(content: ContentOption = None) -> None:
    """Check that every definition, query and model of the content is sound."""
    from fabricobs.soundness import check_content

    mistakes = list(check_content(tuple(content or ())))
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    if mistakes:
        raise typer.Exit(UNKNOWN)
    print("content is sound")


@app.command()
def schema(
    table: Annotated[str | None, typer.Argument(help="One table only.")] = None,
    views: Annotated[bool, typer.Option("--views", help="SQL for a plain duckdb shell.")] = False,
    store: StoreOption = DEFAULT_STORE,
    content: ContentOption = None,
) -> None:
    """Print the tables and their columns, with type, unit and meaning."""
    from fabricobs.store.tables import TABLES

    if views:
        from fabricobs.store.session import init_script

        require_store(store)
        print(init_script(store.absolute(), tuple(content or ())), end="")
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


def _diagnose(store: Path, extra: tuple[Path, ...]) -> "Diagnosis":
    from fabricobs.diagnosis.run import diagnose as run

    require_store(store)
    return run(store, extra)


def _exit_code(found: "Diagnosis", fail_on: str) -> int:
    from fabricobs.diagnosis.findings import SEVERITIES

    if fail_on == "never":
        return 0
    if fail_on not in SEVERITIES:
        fail(f"--fail-on {fail_on}: use never or one of {', '.join(SEVERITIES)}")
    worst = found.worst_severity
    if worst is None or SEVERITIES.index(worst) < SEVERITIES.index(fail_on):
        return 0 if found.verdict.judged else UNKNOWN
    return 2 if worst in {"high", "critical"} else 1


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
    # What modules and definitions make while they load lives as long as the process.
    gc.set_threshold(100_000)
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
