"""What the commands share: options, their values, exit codes.

Exit codes follow the monitoring plug-ins: 0 nothing at or above --fail-on, 1 warning, 2 critical,
3 unknown (bad usage, unreadable input, not enough data).
"""

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from fabricobs.exceptions import UserError

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
ExecutorOption = Annotated[
    str | None,
    typer.Option(
        "--executor",
        help="Workers of a Dask cluster instead: dask://HOST:PORT of its scheduler.",
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
    """Return what the configuration says that a command without a store needs, with its options."""
    from fabricobs.config.basics import Given

    return Given(config, options).basics()


def opened(
    store: Path | None,
    content: list[Path] | None,
    config: Path | None,
    allow_files: list[Path] | None = None,
) -> "OpenStore":
    """Return the store that the options of a command name."""
    from fabricobs.api import open_store

    return open_store(store, content or (), config, allow_files or ())


class Command(TyperCommand):
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
        _refuse_empty(self, ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a mistake in what was given names the option and the help."""
        with _usage_named(ctx):
            return super().invoke(ctx)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, in lines as wide as the help."""
        _write_examples(self, formatter)


class CommandGroup(TyperGroup):
    """A group that takes no empty text either, where none of its commands is called."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, in lines as wide as the help."""
        _write_examples(self, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as every group does, after a look at what is given."""
        if not self.commands.keys() & set(args):
            _refuse_empty(self, ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the group; a mistake in what was given names the option and the help."""
        with _usage_named(ctx):
            return super().invoke(ctx)


@contextmanager
def _usage_named(context: Any) -> Iterator[None]:
    """Have a mistake in what was given on the command line name its option, and the help."""
    try:
        yield
    except UserError as error:
        raise UserError(_with_usage(context, str(error))) from error


def _with_usage(context: Any, told: str) -> str:
    params = context.command.params
    options = [name for param in params for name in param.opts if name[:2] == "--"]
    arguments = [f"{_argument(param)} " for param in params if param.opts[0][:2] != "--"]
    plain = re.sub(r"`[^`]*`", "", told)  # not what a command that it advises has
    named = any(re.search(rf"{re.escape(name)}(?![\w-])", plain) for name in options)
    named |= told.startswith(tuple(arguments))
    for label, value in _given(context):
        if told.startswith((f"{value}:", f"{value} ")):
            named, told = True, f"{label} {told}"
            break
        if not named and repr(value) in told:
            named, told = True, f"{label}: {told}"
            break
    if not named or "\n" in told or "`fabricobs " in told:
        return told
    return f"{told} (see `{context.command_path} --help`)"


def _given(context: Any) -> Iterator[tuple[str, str]]:
    """Yield what was given on the command line: the name of the option or argument, the value."""
    for param in context.command.params:
        source = context.get_parameter_source(param.name)
        if source is not None and source.name == "COMMANDLINE":
            label = param.opts[0] if param.opts[0][:2] == "--" else _argument(param)
            value = context.params.get(param.name)
            for one in value if isinstance(value, list | tuple) else [value]:
                yield label, str(one)


def _argument(param: Any) -> str:
    return str(param.metavar or param.name.upper())


def _write_examples(command: TyperCommand | TyperGroup, formatter: Any) -> None:
    lines = (command.epilog or "").removeprefix("\b\n").split("\n")
    formatter.write("\n" + "\n".join(_example(line, formatter.width) for line in lines) + "\n")


def _example(line: str, width: int) -> str:
    """Return an example in lines of a shell that are no wider; its remark goes above it."""
    indent = " " * (len(line) - len(line.lstrip()))
    command, _, remark = line.partition("  # ")
    if len(line) <= width or not command.strip():
        return line
    words = textwrap.wrap(
        command.strip(), width - len(indent) - 2, subsequent_indent="  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    above = [f"# {remark.strip()}"] if remark else []
    broken = [*(f"{part} \\" for part in words[:-1]), words[-1]]
    return "\n".join(indent + part for part in [*above, *broken])


def _refuse_empty(command: TyperCommand | TyperGroup, context: Any, args: list[str]) -> None:
    for before, given in pairwise(["", *args]):
        if not given or _EMPTY.fullmatch(given):
            named = given.rstrip("=") or (before if before.startswith("--") else "")
            names = [_argument(p) for p in command.params if p.param_type_name == "argument"]
            told = f"{named or ' or '.join(names)}: an empty text; leave it out or give a value"
            raise UserError(f"{told} (see `{context.command_path} --help`)")


def check_text_format(format: str) -> None:
    """Fail unless a diagnosis or comparison can be written so."""
    if format not in {"text", "json"}:
        raise UserError(f"--format {format}: use text or json")


def check_fail_on(fail_on: str) -> None:
    """Fail unless it is a severity or never."""
    from fabricobs.diagnosis.findings import SEVERITIES

    if fail_on not in {"never", *SEVERITIES}:
        raise UserError(f"--fail-on {fail_on}: use never or one of {', '.join(SEVERITIES)}")


def exit_code(found: "Diagnosis", fail_on: str) -> int:
    """Return the exit code of a diagnosis."""
    from fabricobs.diagnosis.findings import SEVERITIES

    if fail_on == "never":
        return 0
    worst = found.worst_severity
    if worst is None or SEVERITIES.index(worst) < SEVERITIES.index(fail_on):
        return 0 if found.verdict.judged and not found.failures else UNKNOWN
    return 2 if worst in {"high", "critical"} else 1
