"""What the verbs share: options, what is given with them, exit codes.

Exit codes follow the monitoring plug-ins: 0 nothing at or above --fail-on, 1 warning, 2 critical,
3 unknown (bad usage, unreadable input, not enough data).
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from fabricobs.printing import note

if TYPE_CHECKING:
    from fabricobs.api import OpenStore
    from fabricobs.config.basics import Basics
    from fabricobs.diagnosis.findings import Diagnosis

UNKNOWN = 3
_EMPTY = re.compile(r"--[a-z-]+=")
_VALUE_NAMES = {
    "path": "PATH", "list[Path]": "PATH", "str": "TEXT", "list[str]": "TEXT",
    "int": "NUMBER", "int range": "NUMBER", "list[int]": "NUMBER",
}  # fmt: skip

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Configuration (default: $FABRICOBS_CONFIG, ./fabricobs.toml, ~/.config/fabricobs/).",
    ),
]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store", help="Directory of the store (default: $FABRICOBS_STORE or ./fabric-store)."
    ),
]
ContentOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--content",
        help="Directory with your own formats, queries and models: ingest/, queries/, models/.",
    ),
]
AllowFilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow-files", help="Directory whose files a statement may also read; repeatable."
    ),
]
FollowOption = Annotated[
    bool | None, typer.Option("--follow", help="Follow symbolic links to places outside LOGS.")
]
RowsOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="table, csv, json (one object per line) or parquet; else as the file's name ends, "
        "else table.",
    ),
]
TextOption = Annotated[str, typer.Option("--format", help="text or json.")]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="Write all rows to this file: .csv, .json, .jsonl or .parquet."),
]
WindowOption = Annotated[
    str | None,
    typer.Option("--window", help="Diagnose only the newest data, e.g. 6h (default: all data)."),
]
OneJobOption = Annotated[
    str | None,
    typer.Option(
        "--job", help="Diagnose only this job; `fabricobs diagnose --list-jobs` lists the names."
    ),
]
JobOption = Annotated[
    str | None, typer.Option("--job", help="Name of the job that wrote these logs.")
]
ZoneOption = Annotated[
    str | None, typer.Option("--tz", help="Time zone of times without one (default: UTC).")
]
HostFromOption = Annotated[
    list[str] | None,
    typer.Option(
        "--host-from",
        help="Position of the host in paths below LOGS, e.g. '{host}/{time}/**'; repeatable.",
    ),
]
FailOnOption = Annotated[
    str,
    typer.Option(
        "--fail-on",
        help="Lowest severity with an exit code: info, low, medium, high, critical; or never.",
    ),
]


def given(config: Path | None, **options: Any) -> "Basics":
    """Return what the configuration says that a verb without a store needs, with its options."""
    from fabricobs.config.basics import Given

    return Given(config, options).basics()


def opened(
    store: Path | None,
    content: list[Path] | None,
    config: Path | None,
    allow_files: list[Path] | None = None,
) -> "OpenStore":
    """Return the store that the options of a verb name."""
    from fabricobs.api import open_store

    return open_store(store, content or (), config, allow_files or ())


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that a verb works, and for how long, until it is done."""
    if not sys.stderr.isatty():
        yield
        return
    from fabricobs.report.progress import elapsed

    with elapsed(what):
        yield


class Verb(TyperCommand):
    """A command that takes no empty text: as a path it would be the current folder.

    Its help names the values of options in words, not by types of Python.
    """

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters; those of options without a name for their value get one."""
        params = super().get_params(ctx)
        for param in params:
            if isinstance(param, TyperOption) and param.metavar is None and not param.is_flag:
                param.metavar = _VALUE_NAMES.get(param.display_type(ctx).strip("<>"))
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as every command does, after a look at what is given."""
        _refuse_empty(self, args)
        return super().parse_args(ctx, args)


class VerbGroup(TyperGroup):
    """A group that takes no empty text either, where none of its commands is called."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as every group does, after a look at what is given."""
        if not self.commands.keys() & set(args):
            _refuse_empty(self, args)
        return super().parse_args(ctx, args)


def _refuse_empty(command: TyperCommand | TyperGroup, args: list[str]) -> None:
    for before, given in pairwise(["", *args]):
        if not given or _EMPTY.fullmatch(given):
            named = given.rstrip("=") or (before if before.startswith("--") else "")
            names = [p.name or "" for p in command.params if p.param_type_name == "argument"]
            fail(f"{named or ' or '.join(names)}: an empty text; leave it out or give a value")


def check_text_format(format: str) -> None:
    """Fail unless a diagnosis or comparison can be written so."""
    if format not in {"text", "json"}:
        fail(f"--format {format}: use text or json")


def check_fail_on(fail_on: str) -> None:
    """Fail unless it is a severity or never."""
    from fabricobs.diagnosis.findings import SEVERITIES

    if fail_on not in {"never", *SEVERITIES}:
        fail(f"--fail-on {fail_on}: use never or one of {', '.join(SEVERITIES)}")


def exit_code(found: "Diagnosis", fail_on: str) -> int:
    """Return the exit code of a diagnosis."""
    from fabricobs.diagnosis.findings import SEVERITIES

    if fail_on == "never":
        return 0
    worst = found.worst_severity
    if worst is None or SEVERITIES.index(worst) < SEVERITIES.index(fail_on):
        return 0 if found.verdict.judged and not found.failures else UNKNOWN
    return 2 if worst in {"high", "critical"} else 1


def fail(text: str) -> NoReturn:
    """Print what is wrong and end as unknown."""
    note(text)
    raise typer.Exit(UNKNOWN)
