"""What an ingest is given and what it answers: files, options and the outcome of each file.

Nothing heavy is imported here: an ingest that finds nothing to do needs no more than this.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path, PurePath
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says about the input: job, zone of bare times, own content, whose files."""

    job: str | None = None
    zone: str = "UTC"
    content: tuple[Path, ...] = ()
    host_from: tuple[str, ...] = ()  # patterns of paths that name hosts

    @property
    def tzinfo(self) -> tzinfo:
        """Return the zone of times that name none."""
        return UTC if self.zone == "UTC" else ZoneInfo(self.zone)


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file found: the directory given, and the file's path below it."""

    root: str
    below: str  # empty where the file itself was given

    @property
    def name(self) -> str:
        """Return its path as text."""
        return f"{self.root.rstrip('/')}/{self.below}" if self.below else self.root

    @property
    def path(self) -> Path:
        """Return its path."""
        return Path(self.name)

    @property
    def below_root(self) -> PurePath:
        """Return its path below the directory given; its name where the file itself was given."""
        return PurePath(self.below or PurePath(self.root).name)

    @property
    def root_name(self) -> str:
        """Return the name of the directory given, or of the one the given file lies in."""
        root = PurePath(self.root)
        return root.name if self.below else root.parent.name


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one file of the input."""

    path: Path
    formats: tuple[str, ...] = ()
    lines: int = 0
    parsed: int = 0
    ignored: int = 0
    not_kept: tuple[tuple[str, int], ...] = ()  # of the ignored lines: what about, and how many
    unparsed: int = 0
    unclaimed: int = 0
    rows: int = 0
    unchanged: bool = False
    problem: str | None = None
    unexpected: bool = False  # the problem is an error of fabricobs
    unrecognised: str | None = None
    unused: tuple[str, ...] = ()
    first_unread: tuple[int, str, str] | None = None
    size_bytes: int = 0
    span: tuple[datetime, datetime] | None = None  # first and last time of its rows
    shapes: tuple[tuple[str, int], ...] = ()  # of its unclaimed lines, most frequent first
    stored: bool = False  # its rows, if it gives any, are in the store
    unknown_device: str | None = None  # what its rows go by, where nothing names their device
    doubt: str | None = None  # what is uncertain about its identity


@dataclass(slots=True)
class IngestReport:
    """Every file of the input, in path order."""

    outcomes: list[FileOutcome] = field(default_factory=list)

    @property
    def read(self) -> list[FileOutcome]:
        """Return the files that were read now."""
        return [o for o in self.outcomes if o.formats and not o.unchanged]

    @property
    def problems(self) -> list[FileOutcome]:
        """Return the files that could not be read, or not to their end."""
        return [o for o in self.outcomes if o.problem is not None]

    @property
    def unknown_devices(self) -> list[FileOutcome]:
        """Return the files read now whose rows belong to a device that nothing names."""
        return [o for o in self.read if o.unknown_device is not None]

    @property
    def unrecognised(self) -> list[FileOutcome]:
        """Return the files that show no known format."""
        return [o for o in self.outcomes if o.unrecognised is not None]


def not_kept(kinds: Iterable[tuple[str, int]]) -> str:
    """Return what ignored lines are about and how many there are of each kind, as text."""
    return ", ".join(f"{kind} {count:,}" for kind, count in kinds)


def path_text(path: str | PurePath) -> str:
    """Return a path as text that can be stored; a byte that is no UTF-8 as \\xff."""
    text = str(path)
    return text if text.isascii() else os.fsencode(text).decode("utf-8", "backslashreplace")


def discover(inputs: Sequence[Path], store: Path) -> Iterator[InputFile]:
    """Yield each file below the inputs, the store's own left out."""
    stored = os.path.abspath(store)  # noqa: PTH100
    for given in inputs:
        root = os.path.abspath(given)  # noqa: PTH100 (no symlink is followed)
        if not Path(root).is_dir():
            yield InputFile(root, "")
            continue
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith(".") and f"{folder.rstrip('/')}/{name}" != stored
            )
            below = folder[len(root.rstrip("/")) + 1 :]
            for name in sorted(names):
                if not name.startswith("."):
                    yield InputFile(root, f"{below}/{name}" if below else name)
