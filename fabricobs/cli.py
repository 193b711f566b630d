"""The command line: the verbs of `verbs/` put together, and how a mistake of the user ends one.

Data goes to standard output, notes to standard error. Exit codes follow the monitoring plug-ins:
0 nothing at or above --fail-on, 1 warning, 2 critical, 3 unknown (bad usage, unreadable input, not
enough data); 70 is an unexpected error of fabricobs. Heavy libraries are imported by the verb that
uses them.
"""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer
from typer.exceptions import TyperException

from fabricobs import __version__
from fabricobs.errors import TRACEBACK, UNEXPECTED, UserError, unexpected
from fabricobs.machine import collect_seldom
from fabricobs.verbs import asking, defining, diagnosing, ingesting, operating, simulating
from fabricobs.verbs.shared import UNKNOWN

INTERRUPTED = 130

_VERBS = (
    ingesting.ingest,
    asking.sql,
    asking.query,
    diagnosing.diagnose,
    diagnosing.explain,
    asking.compare,
    diagnosing.report,
    operating.watch,
    operating.prune,
    operating.schedule,
    operating.config,
    simulating.demo,
    simulating.simulate,
    defining.check,
    asking.schema,
)

app = typer.Typer(
    name="fabricobs",
    help="Why is this training run slow? Reads NCCL logs, switch and NIC counters and step times.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _verb in _VERBS:
    app.command()(_verb)
app.add_typer(simulating.bench_app, name="bench")
app.add_typer(defining.formats_app, name="formats")


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
    collect_seldom()
    # A file name need not be UTF-8, and a terminal need not know every character.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
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
    except Exception as error:
        print(
            f"fabricobs: {unexpected(error)}; please report it "
            f"({TRACEBACK}=1 shows the whole traceback)",
            file=sys.stderr,
        )
        code = UNEXPECTED
    if code == INTERRUPTED:
        print(
            "fabricobs: stopped; what is committed stays, the same again goes on", file=sys.stderr
        )
    sys.exit(code if isinstance(code, int) else 0)
