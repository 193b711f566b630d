"""The command that reads logs into the store."""

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricobs.cli.options import (
    UNKNOWN,
    ConfigOption,
    ContentOption,
    ExecutorOption,
    FollowOption,
    HostFromOption,
    JobOption,
    StoreOption,
    ZoneOption,
)
from fabricobs.exceptions import UNEXPECTED, UserError
from fabricobs.printing import note, show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fabricobs.inputs import FileOutcome
    from fabricobs.report.progress import ProgressBar


def ingest(
    logs: Annotated[
        list[Path], typer.Argument(help="Files, directories and s3:// addresses to read.")
    ],
    store: StoreOption = None,
    job: JobOption = None,
    tz: ZoneOption = None,
    content: ContentOption = None,
    host_from: HostFromOption = None,
    follow: FollowOption = None,
    workers: Annotated[
        int, typer.Option(help="Number of reading processes; 0 = one per core.", min=0, max=1024)
    ] = 0,
    executor: ExecutorOption = None,
    config: ConfigOption = None,
) -> None:
    """Read logs into the store. Reading the same logs again changes nothing."""
    from fabricobs import api
    from fabricobs.inputs import path_text
    from fabricobs.report.account import ingest_table

    with _progress_bar() as bar:
        report = api.ingest(
            logs, store, job=job, tz=tz, content=content or (), host_from=host_from or (),
            follow=follow, workers=workers, executor=executor, config=config, progress=bar,
        )  # fmt: skip
    show(ingest_table(report))
    if not report.outcomes:
        raise UserError(f"nothing to read: no file below {', '.join(map(path_text, logs))}")
    for outcome in report.problems:
        if not outcome.unchanged:
            note(f"{outcome.name}: {outcome.problem}")
    still = sum(outcome.unchanged for outcome in report.problems)
    if still:
        have = "file still has the problem" if still == 1 else "files still have the problems"
        note(f"{still:,} {have} of an earlier ingest: column `problem` of table `files`")
    if not any(outcome.formats for outcome in report.outcomes):
        raise UserError(
            "no file shows a format that fabricobs knows; `fabricobs formats` lists them"
        )
    raise typer.Exit(_exit_code(report.problems))


@contextmanager
def _progress_bar() -> "Iterator[ProgressBar | None]":
    """Give a progress bar where somebody sees it."""
    if not sys.stderr.isatty():
        yield None
        return
    from fabricobs.report.progress import ProgressBar

    bar = ProgressBar()
    try:
        yield bar
    finally:
        bar.close()


def _exit_code(problems: "Sequence[FileOutcome]") -> int:
    """Return 70 for an error of fabricobs, 3 if a file gave nothing, 1 if all gave something.

    A problem of an earlier ingest counts as at first: an ingest that is repeated stays as it was.
    """
    if any(outcome.unexpected for outcome in problems):
        return UNEXPECTED
    if any(outcome.rows == 0 for outcome in problems):
        return UNKNOWN
    return 1 if problems else 0
