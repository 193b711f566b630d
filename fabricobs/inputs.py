"""What an ingest is given and what it answers: files, options and the outcome of each file.

Nothing heavy is imported here: an ingest that finds nothing to do needs no more than this.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path, PurePath
from typing import ClassVar
from zoneinfo import ZoneInfo

from fabricobs.exceptions import UserError
from fabricobs.formats.private_files import is_private
from fabricobs.notebook import table
from fabricobs.store.location import address_of, as_address, is_address, shown

# Files of a live /proc or /sys that wait for their next line, or have no end.
_MOST_KINDS = 12  # of what is not kept, named in a text
_ENDLESS = {"kcore", "kmsg", "trace_pipe", "trace_pipe_raw"}


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says about the input: job, zone of bare times, own content, whose files."""

    job: str | None = None
    zone: str = "UTC"
    content: tuple[Path, ...] = ()
    host_from: tuple[str, ...] = ()  # patterns of paths that name hosts
    follow: bool = False  # symbolic links that lead out of the input
    aliases: tuple[tuple[str, str], ...] = ()  # name and host, of the host maps of the input

    @property
    def tzinfo(self) -> tzinfo:
        """Return the zone of times that name none."""
        return UTC if self.zone == "UTC" else ZoneInfo(self.zone)


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file found: the directory given, and the file's path below it."""

    root: str
    below: str  # empty where the file itself was given
    listed: tuple[int, int, str] | None = None  # of an object: size, change in ns, ETag

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

    def size_and_change(self) -> tuple[int, int]:
        """Return its size in bytes and its last change in us since 1970; OSError if it is gone."""
        if self.listed is not None:
            return self.listed[0], self.listed[1] // 1000
        stat = os.stat(self.name)  # noqa: PTH116 (a Path each costs more than the look)
        return stat.st_size, stat.st_mtime_ns // 1000


Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one file of the input."""

    path: Path
    formats: tuple[str, ...] = ()
    lines: int = 0
    parsed: int = 0
    ignored: int = 0
    not_kept: tuple[tuple[str, int], ...] = ()  # kinds of lines, and fields; how many of each
    unparsed: int = 0
    unclaimed: int = 0
    rows: int = 0
    unchanged: bool = False
    is_copy: bool = False  # unchanged: another file of the input has the same lines
    problem: str | None = None
    unexpected: bool = False  # the problem is an error of fabricobs
    unrecognised: str | None = None
    first_unread: tuple[int, str, str] | None = None
    size_bytes: int = 0
    span: Span | None = None  # first and last time of its rows
    shapes: tuple[tuple[str, int], ...] = ()  # of its unclaimed lines, most frequent first
    stored: bool = False  # its rows, if it gives any, are in the store
    unknown_device: str | None = None  # what its rows go by, where nothing names their device
    untimed_steps: int = 0  # steps in whose lines no time stands
    doubt: str | None = None  # what is uncertain about its identity
    timed_by_change: bool = False  # rows have the time of the file's last change, for want of one

    @property
    def name(self) -> str:
        """Return its path, or its address, as text."""
        return path_text(self.path)


@dataclass(slots=True)
class LeftOut:
    """What a walk met and did not read, by number."""

    links: int = 0
    special: int = 0
    private: int = 0
    stores: int = 0

    def lines(self) -> Iterator[str]:
        """Yield a sentence for each kind that was met."""
        said = {
            "symbolic links out of the input; --follow follows them": self.links,
            "pipes, sockets or devices": self.special,
            "private files by their names (keys, environments)": self.private,
            "store that lies in the input, the one that is written": self.stores,
        }
        for what, count in said.items():
            if count:
                yield f"Not read: {count:,} {what}."


@dataclass(frozen=True, slots=True)
class Found:
    """The files of an input, and what is not read."""

    files: list[InputFile]
    left_out: LeftOut


@dataclass(slots=True)
class IngestReport:
    """Every file of the input, in path order."""

    outcomes: list[FileOutcome] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)
    unfit_patterns: tuple[str, ...] = ()  # of --host-from, that fit no path
    a_path: str = ""  # below the input, as a pattern would have to fit one

    @property
    def read(self) -> list[FileOutcome]:
        """Return the files that were read now."""
        return [o for o in self.outcomes if o.formats and not o.unchanged]

    @property
    def problems(self) -> list[FileOutcome]:
        """Return the files that could not be read, or not to their end."""
        return [o for o in self.outcomes if o.problem is not None]

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "format", "files", "lines", "parsed", "ignored", "unread", "rows", "from", "to",
    )  # fmt: skip

    def by_format(self) -> list[tuple[str, tuple[int, ...], Span | None]]:
        """Return the files read now by format, the sum last: COLUMNS without a head, and times."""
        grouped: dict[str, list[FileOutcome]] = {}
        for outcome in self.read:
            grouped.setdefault(" + ".join(outcome.formats), []).append(outcome)
        rows = [*sorted(grouped.items()), ("all", self.read)]
        return [(name, _sums(outcomes), span_of(outcomes)) for name, outcomes in rows]

    def _repr_html_(self) -> str:
        rows = [(name, *sums, *(span or (None, None))) for name, sums, span in self.by_format()]
        said = [(outcome.path, outcome.problem) for outcome in self.problems]
        shown = table(self.COLUMNS, rows) + (table(("file", "problem"), said) if said else "")
        again = "".join(f"<p>files {why}: {number:,}</p>" for why, number in self.not_read_again())
        return shown + again

    def not_read_again(self) -> list[tuple[str, int]]:
        """Return why files were not read, and how many."""
        unchanged = [outcome for outcome in self.outcomes if outcome.unchanged]
        copies = sum(outcome.is_copy for outcome in unchanged)
        why = {
            "already in the store, unchanged": len(unchanged) - copies,
            "with the content of another, read once": copies,
        }
        return [(reason, number) for reason, number in why.items() if number]

    @property
    def unknown_devices(self) -> list[FileOutcome]:
        """Return the files read now whose rows belong to a device that nothing names."""
        return [o for o in self.read if o.unknown_device is not None]

    @property
    def unrecognised(self) -> list[FileOutcome]:
        """Return the files that show no known format."""
        return [o for o in self.outcomes if o.unrecognised is not None]


def span_of(outcomes: Sequence[FileOutcome]) -> Span | None:
    """Return first and last time of the rows of some files; None where no row has one."""
    spans = [outcome.span for outcome in outcomes if outcome.span is not None]
    return (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else None


def _sums(outcomes: Sequence[FileOutcome]) -> tuple[int, ...]:
    counts = [(1, o.lines, o.parsed, o.ignored, o.unparsed, o.rows) for o in outcomes]
    return tuple(map(sum, zip(*counts, strict=True))) or (0,) * 6


def not_kept(kinds: Sequence[tuple[str, int]]) -> str:
    """Return what is known and not kept, and how many there are of each kind, as text."""
    named = [f"{kind} {count:,}" for kind, count in kinds[:_MOST_KINDS]]
    more = len(kinds) - len(named)
    return ", ".join([*named, *([f"and {more:,} more kinds"] if more > 0 else [])])


def path_text(path: str | PurePath) -> str:
    """Return a path as text that can be stored; a byte that is no UTF-8 as \\xff."""
    text = as_address(path) or str(path)
    return text if text.isascii() else os.fsencode(text).decode("utf-8", "backslashreplace")


def check_inputs(inputs: Sequence[Path]) -> None:
    """Raise UserError unless all are files or directories that exist, or addresses."""
    for path in inputs:
        if is_address(path):
            continue
        if not path.exists() and not path.is_symlink():
            raise UserError(f"{path}: no such file or directory")
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UserError(f"{path}: a pipe, socket or device; write it to a file first")


def check_apart(inputs: Sequence[Path], store: Path) -> None:
    """Raise UserError if an input is the store or lies in it: parts would be read as logs."""
    stored = address_of(store) or os.path.realpath(store)
    for given in inputs:
        if f"{as_address(given) or os.path.realpath(given)}/".startswith(f"{stored}/"):
            raise UserError(
                f"{path_text(given)}: is the store {shown(store)}, or lies in it; "
                "name another --store"
            )


def discover(
    inputs: Sequence[Path],
    store: Path,
    *,
    follow: bool = False,
    left_out: LeftOut | None = None,
) -> Iterator[InputFile]:
    """Yield each file below the inputs, the store's own left out; `left_out` counts what is not.

    Links are followed to files below the same input, with `follow` everywhere. A link to a
    directory below the same input is not: its files are found where they are.
    """
    stored = os.path.abspath(store)  # noqa: PTH100
    left_out = left_out if left_out is not None else LeftOut()
    for given in inputs:
        if is_address(given):
            yield from _objects(given, address_of(store), left_out)
            continue
        root = os.path.abspath(given)  # noqa: PTH100 (no symlink is followed)
        if os.path.isdir(root):  # noqa: PTH112 (as quick as it gets, here and below)
            walk = _Walk(root, os.path.realpath(root), stored, follow, left_out)
            yield from walk.files("", frozenset({walk.real_root}))
        elif _is_special(root):
            left_out.special += 1
        else:
            yield InputFile(root, "")


def find(inputs: Sequence[Path], store: Path, *, follow: bool = False) -> "Found":
    """Return the files below the inputs, all of them found now."""
    left_out = LeftOut()
    return Found(list(discover(inputs, store, follow=follow, left_out=left_out)), left_out)


def _objects(root: Path, store: str | None, left_out: LeftOut) -> Iterator[InputFile]:
    """Yield each object below an address, as a walk does the files of a directory."""
    from fabricobs.remote import listed  # not where all inputs are files

    in_store = False
    for below, look in listed(root):
        file = InputFile(str(root), below, look)
        if store is not None and f"{path_text(file.name)}/".startswith(f"{store}/"):
            in_store = True
        elif any(part.startswith(".") for part in PurePath(below).parts):
            continue
        elif is_private(PurePath(file.name)) or is_private(PurePath(below)):
            left_out.private += 1
        else:
            yield file
    left_out.stores += in_store


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk below one directory given."""

    root: str
    real_root: str
    stored: str
    follow: bool
    left_out: LeftOut

    def files(self, below: str, above: frozenset[str]) -> Iterator[InputFile]:
        """Yield the files of a folder, then of the folders in it; `above` are those it lies in."""
        folders: list[tuple[str, frozenset[str]]] = []
        place = f"{self.root.rstrip('/')}/{below}"
        try:
            with os.scandir(place) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            return  # as a walk that may not read it
        for entry in entries:
            path = f"{below}/{entry.name}" if below else entry.name
            if entry.path == self.stored:
                self.left_out.stores += 1
                continue
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append((path, above))
            elif entry.is_symlink():
                target = os.path.realpath(entry.path)
                if not (self.follow or f"{target}/".startswith(f"{self.real_root.rstrip('/')}/")):
                    self.left_out.links += 1
                elif not os.path.isdir(target):  # noqa: PTH112
                    yield from self._file(path, PurePath(target), special=_is_special(target))
                elif self.follow and target not in above:
                    folders.append((path, above | {target}))
            else:
                special = not entry.is_file(follow_symlinks=False) or entry.name in _ENDLESS
                yield from self._file(path, PurePath(entry.path), special=special)
        for folder, its_above in folders:
            yield from self.files(folder, its_above)

    def _file(self, below: str, path: PurePath, *, special: bool) -> Iterator[InputFile]:
        if special:
            self.left_out.special += 1
        elif is_private(path) or is_private(PurePath(below)):
            self.left_out.private += 1
        else:
            yield InputFile(self.root, below)


def _is_special(path: str) -> bool:
    """Say whether a path is a pipe, a socket or a device, which is never opened."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return False  # who reads it says why it cannot be read
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
