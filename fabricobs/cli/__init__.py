"""The command line: prints what `fabricobs.api` returns, or the mistake of the user in one line.

Data goes to standard output, notes to standard error. Exit codes follow the monitoring plug-ins:
0 nothing at or above --fail-on, 1 warning, 2 critical, 3 unknown (bad usage, unreadable input, not
enough data); 70 is an unexpected error of fabricobs. Heavy libraries are imported by the command
that uses them.
"""

import signal
import sys
import warnings
from io import TextIOWrapper
from typing import Annotated, TextIO

import typer
from typer.exceptions import TyperException

from fabricobs import __version__, stopping
from fabricobs.cli import diagnosis, formats, ingest, operation, queries, simulation
from fabricobs.cli.examples import epilog
from fabricobs.cli.options import UNKNOWN, Command
from fabricobs.exceptions import TRACEBACK, UNEXPECTED, UserError, unexpected
from fabricobs.printing import note, note_lines, show
from fabricobs.resources import raise_gc_threshold

_COMMANDS = (
    ingest.ingest,
    queries.sql,
    queries.query,
    diagnosis.diagnose,
    diagnosis.explain,
    queries.compare,
    diagnosis.report,
    operation.watch,
    operation.prune,
    operation.verify,
    operation.schedule,
    operation.config,
    simulation.demo,
    simulation.simulate,
    formats.check,
    queries.schema,
)

app = typer.Typer(
    name="fabricobs",
    help="Why is this training run slow? Reads NCCL logs, switch and NIC counters and step times.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 200},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _command in _COMMANDS:
    app.command(cls=Command, epilog=epilog(_command.__name__))(_command)
app.add_typer(simulation.bench_app, name="bench")
app.add_typer(formats.formats_app, name="formats")


@app.callback(invoke_without_command=True)
def _no_command(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        show(f"fabricobs {__version__}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        show(context.get_help())
        raise typer.Exit(UNKNOWN)


def main() -> None:
    """Run the command line; a mistake of the user is one line and exit code 3, no traceback."""
    stopping.listen()
    warnings.showwarning = _show_warning
    raise_gc_threshold()
    # A file name need not be UTF-8, and a terminal need not know every character.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _run()
    except stopping.Stopped:
        note(stopping.ending())
        stopping.end()
    sys.exit(code)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as a note, in one line."""
    note(str(message))


def _run() -> int:
    """Run a command and return the exit code; Stopped if a signal ended it."""
    try:
        try:
            code = app(standalone_mode=False, prog_name="fabricobs")
        except Exception:
            stopping.check()  # what was interrupted fails in many ways
            raise
    except TyperException as error:
        asked = getattr(getattr(error, "ctx", None), "command_path", "fabricobs")
        note(f"{error.format_message()} (see `{asked} --help`)")
        code = UNKNOWN
    except typer.Abort:
        code = 128 + signal.SIGINT
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except UserError as error:
        note_lines(str(error))
        code = UNKNOWN
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        note(f"{where}{error.strerror or error}")
        code = UNKNOWN
    except Exception as error:
        told = f"please report it ({TRACEBACK}=1 shows the whole traceback)"
        note(f"{unexpected(error)}; {told}")
        code = UNEXPECTED
    return code if isinstance(code, int) else 0
