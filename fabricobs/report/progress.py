"""Progress on a terminal: of an ingest by files and bytes, of other commands the time they take."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from fabricobs.inputs import FileOutcome


class ProgressBar:
    """A bar on standard error."""

    def __init__(self) -> None:
        files = TextColumn("{task.fields[files]}/{task.fields[all_files]} files")
        self._bar = Progress(
            BarColumn(), files, DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("ingest", total=None, files=0, all_files=0)
        self._files = 0

    def begin(self, files: int, size_bytes: int) -> None:
        """Show the bar."""
        self._bar.update(self._task, total=size_bytes, all_files=files)
        self._bar.start()

    def done(self, outcome: FileOutcome) -> None:
        """Move on by a file."""
        self._files += 1
        self._bar.update(self._task, advance=outcome.size_bytes, files=self._files)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()


@contextmanager
def elapsed(what: str) -> Iterator[None]:
    """Show on standard error what is done and for how long, while the body runs."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    # Else what the body prints to standard output would go to standard error.
    shown = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
    with shown as progress:
        progress.add_task(what, total=None)
        yield
