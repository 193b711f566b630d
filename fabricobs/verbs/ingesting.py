"""The verb that reads logs into the store."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fabricobs.exceptions import UNEXPECTED
from fabricobs.printing import note, show
from fabricobs.resources import cores
from fabricobs.verbs.shared import (
    UNKNOWN,
    ConfigOption,
    ContentOption,
    FollowOption,
    HostFromOption,
    JobOption,
    StoreOption,
    ZoneOption,
    check_folder,
    check_inputs,
    configured_basics,
    fail,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabricobs.inputs import FileOutcome, IngestReport, Options


def ingest(
    logs: Annotated[list[Path], typer.Argument(help="Files and directories to read.")],
    store: StoreOption = None,
    job: JobOption = None,
    tz: ZoneOption = None,
    content: ContentOption = None,
    host_from: HostFromOption = None,
    follow: FollowOption = None,
    workers: Annotated[
        int, typer.Option(help="Number of reading processes; 0 = one per core.", min=0, max=1024)
    ] = 0,
    config: ConfigOption = None,
) -> None:
    """Read logs into the store. Reading the same logs again changes nothing."""
    from fabricobs import unchanged
    from fabricobs.formats.identity.pattern import compile_pattern
    from fabricobs.inputs import LeftOut, Options, check_apart, discover
    from fabricobs.report.account import ingest_table

    given: dict[str, Any] = {
        "store": store, "job": job, "tz": tz, "content": content, "host_from": host_from,
        "follow": follow,
    }  # fmt: skip
    site = configured_basics(config, given)
    inputs = logs if site.host_map is None else [*logs, site.host_map]
    check_inputs(inputs)
    check_folder("--store", site.store)
    check_apart(inputs, site.store)
    for pattern in site.host_from:
        compile_pattern(pattern)
    options = Options(site.job, site.tz, site.content, site.host_from, site.follow)
    left_out = LeftOut()
    files = discover(inputs, site.store, follow=site.follow, left_out=left_out)
    report = unchanged.report_of(files, unchanged.load(site.store, options))
    if report is None:
        report = _read(inputs, site.store, options, workers)
    else:
        report.left_out = left_out
    show(ingest_table(report))
    if not report.outcomes:
        fail(f"nothing to read: no file below {', '.join(map(str, logs))}")
    for outcome in report.problems:
        if not outcome.unchanged:
            note(f"{outcome.path}: {outcome.problem}")
    still = sum(outcome.unchanged for outcome in report.problems)
    if still:
        have = "file still has the problem" if still == 1 else "files still have the problems"
        note(f"{still:,} {have} of an earlier ingest: column `problem` of table `files`")
    if not any(outcome.formats for outcome in report.outcomes):
        fail("no file shows a format that fabricobs knows; `fabricobs formats` lists them")
    raise typer.Exit(_exit_code(report.problems))


def _exit_code(problems: "Sequence[FileOutcome]") -> int:
    """Return 70 for an error of fabricobs, 3 if a file gave nothing, 1 if all gave something.

    A problem of an earlier ingest counts as at first: an ingest that is repeated stays as it was.
    """
    if any(outcome.unexpected for outcome in problems):
        return UNEXPECTED
    if any(outcome.rows == 0 for outcome in problems):
        return UNKNOWN
    return 1 if problems else 0


def _read(logs: list[Path], store: Path, options: "Options", workers: int) -> "IngestReport":
    """Ingest with a progress bar, where somebody sees it."""

    _keep_pandas_out()
    from fabricobs.ingest import ingest as run
    from fabricobs.store.parts import Store

    workers = workers or cores()
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
