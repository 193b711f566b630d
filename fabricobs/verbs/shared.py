"""What the verbs share: options, the configuration they end up with, exit codes.

Exit codes follow the monitoring plug-ins: 0 nothing at or above --fail-on, 1 warning, 2 critical,
3 unknown (bad usage, unreadable input, not enough data).
"""

import os
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from fabricobs.printing import note

if TYPE_CHECKING:
    from fabricobs.config.basics import Basics
    from fabricobs.config.schema import Config
    from fabricobs.diagnosis.findings import Diagnosis

UNKNOWN = 3
_EMPTY = re.compile(r"--[a-z-]+=")

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
    typer.Option("--content", help="Directory with your own ingest/, queries/ and models/."),
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
        help="table, csv, json (an object a line) or parquet; else as the file's name ends, "
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
        "--fail-on", help="Lowest severity that sets the exit code: low ... critical, or never."
    ),
]


def configured(file: Path | None, options: dict[str, Any]) -> "Config":
    """Return the configuration in force, with what the options of a verb say."""
    from fabricobs.config.load import load

    loaded = load(file, options)
    if loaded.warning:
        note(loaded.warning)
    config = loaded.config
    _check(config.job, config.content)
    return config


def configured_basics(file: Path | None, options: dict[str, Any]) -> "Basics":
    """Return what reading and asking need of it; quick where nothing is configured."""
    from fabricobs.config import basics

    if file is None and not basics.is_configured():
        config = basics.with_options(options)
        _check(config.job, config.content)
        return config
    return configured(file, options).basics


def _check(job: str | None, content: Sequence[Path]) -> None:
    """Fail unless the job has a name and the folders of content are there."""
    if job == "":
        fail("--job: an empty name; leave the option out if the logs name their jobs")
    for folder in content:
        if not folder.is_dir():
            fail(f"--content {folder}: no such folder")


def check_folder(option: str, path: Path | None) -> None:
    """Fail unless files can be written into the folder, which need not be there yet."""
    if path is None:
        return
    place = path.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        fail(f"{option} {path}: {place} is no folder")
    if not os.access(place, os.W_OK):
        fail(f"{option} {path}: cannot be written there")


def allowed_files(given: list[Path] | None) -> list[Path]:
    """Return the directories of --allow-files; fail for what is none."""
    for path in given or []:
        if not path.is_dir():
            fail(f"--allow-files {path}: no such directory")
    return given or []


class Verb(TyperCommand):
    """A command that takes no empty text: as a path it would be the current folder."""

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


def check_inputs(logs: list[Path]) -> None:
    """Fail unless all are there."""
    for path in logs:
        if not path.exists() and not path.is_symlink():
            fail(f"{path}: no such file or directory")
        if path.exists() and not (path.is_file() or path.is_dir()):
            fail(f"{path}: a pipe, socket or device; write it to a file first")


def check_target(option: str, path: Path | None) -> None:
    """Fail unless a file can be written there: its folder is there, and it is no folder itself."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        fail(f"{option} {path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        fail(f"{option} {path}: is a folder; name a file")
    if not os.access(path if path.exists() else folder, os.W_OK):
        fail(f"{option} {path}: cannot be written there")


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


def require_store(store: Path) -> None:
    """Fail unless there is a store, and of plain files."""
    from fabricobs.store.inspection import refuse_links
    from fabricobs.store.session import is_store

    if not is_store(store):
        fail(f"{store}: no store here; make one with `fabricobs ingest LOGS --store {store}`")
    refuse_links(store)


def fail(text: str) -> NoReturn:
    """Print what is wrong and end as unknown."""
    note(text)
    raise typer.Exit(UNKNOWN)
