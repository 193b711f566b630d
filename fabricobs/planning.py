"""Planning an ingest: what each file is, and which are in the store already."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

from fabricobs import stopping
from fabricobs.continuation import Repetition, earlier_names, find_known, find_live, live_names
from fabricobs.formats.archive import Member
from fabricobs.formats.budget import cpu_limit
from fabricobs.formats.digests import digest, digest_of_unknown
from fabricobs.formats.failures import OWN_ERROR, failure_of
from fabricobs.formats.identity import Identity
from fabricobs.formats.recognition.catalogue import Catalogue, is_parquet, load_catalogue
from fabricobs.formats.recognition.format import ARCHIVE, CONTAINERS, Format, Recognised
from fabricobs.formats.source import read_ends
from fabricobs.inputs import FileOutcome, InputFile, Options, path_text
from fabricobs.remote import Shelf, local, local_copies
from fabricobs.store.log import KnownFile
from fabricobs.store.storage import StorageError

_BATCH_BYTES = 64 << 20
_BATCH_FILES = 1_000
_MINUTE_US = 60_000_000
_PACKED = re.compile(r"\.(?:gz|zst|xz|bz2)$")
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file to be read, with everything that decides its rows."""

    path: Path
    file_id: str
    content: str
    settings: str
    size_bytes: int
    modified_us: int | None
    identity: Identity
    told: Identity  # that of its path, of which the rows of a log take less
    from_path: dict[str, Any]
    recognised: Recognised
    replaces: str | None = None
    repeats: Repetition | None = None
    kept: Path | None = None  # the copy of an object that planning kept on this machine


class Known:
    """What the store holds, by path and by file id; and the files of this ingest, by path."""

    def __init__(self, files: Iterable[KnownFile], found: Iterable[InputFile] = ()) -> None:
        self.found = {file.name for file in found}
        self.by_path: dict[str, list[KnownFile]] = {}
        self.ids: set[str] = set()
        self.troubled: dict[str, KnownFile] = {}  # by file id, those with a problem
        for file in files:
            self.by_path.setdefault(file.path, []).append(file)
            self.ids.add(file.file_id)
            if file.problem is not None:
                self.troubled[file.file_id] = file

    def add(self, planned: PlannedFile) -> None:
        """Note a file that is about to be read."""
        self.ids.add(planned.file_id)

    def troubled_members(self, archive: KnownFile) -> Iterator[FileOutcome]:
        """Yield the outcomes of the members of an archive in the store that had a problem."""
        for file in self.troubled.values():
            if file.batch == archive.batch and file.path.startswith(f"{archive.path}/"):
                yield _as_before(Path(file.path), file)

    def holds(self, repetition: Repetition, read: Iterable[FileOutcome]) -> bool:
        """Say whether the lines that a copy repeats are in the store, with what was read now."""
        sizes = [file.size_bytes for file in self.by_path.get(path_text(repetition.path), ())]
        sizes += [o.size_bytes for o in read if o.stored and str(o.path) == repetition.path]
        return max(sizes, default=0) >= repetition.length


def stored_outcome(
    file: InputFile,
    told: Identity,
    catalogue: Catalogue,
    options: Options,
    known: Known,
    *,
    same_definitions: bool,
) -> list[FileOutcome] | None:
    """Return the outcome of a file that was read before and not touched since, else None.

    With it come those of the members of an archive that had a problem.

    A file that new siblings, or the user, show to be another host's is read again, and so is one
    that other formats claim today, unless all definitions are those it was looked at with.
    """
    earlier = known.by_path.get(path_text(file.name), [])
    path = file.path
    try:
        look = file.size_and_change() if earlier else None
    except OSError:
        return None  # planning says why
    for before in earlier:
        if (
            look is not None
            and _untouched(before, *look, catalogue, options)
            and before.device_source in {None, told.device_source}
            and (before.device_source is None or before.device == told.device)
        ):
            outcome = _as_before(path, before)
            if not (same_definitions or _is_claimed_by(outcome.formats, path, catalogue)):
                return None
            return [outcome, *known.troubled_members(before)]
    return None


def _as_before(path: Path, before: KnownFile) -> FileOutcome:
    """Return the outcome of a file that is in the store; its problem, if it has one, stays."""
    return FileOutcome(
        path,
        tuple(filter(None, before.formats.split(","))),
        unchanged=True,
        stored=True,
        rows=before.rows,
        problem=before.problem,
        unexpected=before.problem is not None and OWN_ERROR in before.problem,
    )


def _is_claimed_by(names: tuple[str, ...], path: Path, catalogue: Catalogue) -> bool:
    """Say whether these are the formats that recognition finds today."""
    try:
        with local(path) as here:
            ends = read_ends(here)
            with cpu_limit(here):
                return catalogue.recognise(ends, str(path)).names == names
    except StorageError:
        raise
    except Exception:
        return False  # planning says why


def plan_files(
    files: Sequence[tuple[InputFile, Identity]],
    catalogue: Catalogue,
    options: Options,
    shelf: Shelf | None = None,
) -> Iterator[PlannedFile | FileOutcome]:
    """Decide what files are, whatever the store holds; an outcome for one that cannot be read.

    Copies of objects are kept on the shelf, if one is given, as long as there is room.
    """
    keeper = None if shelf is None else shelf.keeper()
    sizes = [(file.path, 0 if file.listed is None else file.listed[0]) for file, _ in files]
    with closing(local_copies(sizes)) as copies:
        for (file, told), here in zip(files, copies, strict=True):
            planned = _plan_file(file.path, here, told, catalogue, options)
            if keeper is None or file.listed is None or isinstance(planned, FileOutcome):
                yield planned
            else:
                yield replace(planned, kept=keeper.keep(here(), planned.size_bytes))


def _plan_file(
    shown: Path,
    here: Callable[[], Path],
    told: Identity,
    catalogue: Catalogue,
    options: Options,
) -> PlannedFile | FileOutcome:
    stopping.check()
    try:
        path = here()
        stat = path.stat()
        if not S_ISREG(stat.st_mode):
            return FileOutcome(shown, problem="is no regular file")
        modified_us = stat.st_mtime_ns // 1000
        return _plan(shown, path, told, modified_us, catalogue, options)
    except StorageError:
        raise
    except Exception as error:
        return _unreadable(shown, error)


def _unreadable(path: Path, error: Exception) -> FileOutcome:
    failure = failure_of(error)
    return FileOutcome(path, problem=failure.reason, unexpected=failure.unexpected)


def plan_files_apart(
    found: Sequence[tuple[InputFile, Identity]], options: Options, shelf: Shelf | None = None
) -> list[PlannedFile | FileOutcome]:
    """Plan some files in a process of its own, which loads the definitions once."""
    return list(plan_files(found, _catalogue_of_process(options.content), options, shelf))


@cache
def _catalogue_of_process(content: tuple[Path, ...]) -> Catalogue:
    return load_catalogue(content)


def beside_known(
    planned: PlannedFile, known: Known, catalogue: Catalogue, options: Options
) -> PlannedFile | FileOutcome:
    """Say what a planned file is to those already known: a copy, what one became, or new."""
    if planned.file_id in known.troubled:
        return _as_before(planned.path, known.troubled[planned.file_id])
    if planned.file_id in known.ids:
        copied = path_text(planned.path) not in known.by_path
        names = planned.recognised.names
        return FileOutcome(planned.path, names, unchanged=True, is_copy=copied, stored=True)
    try:
        for before in known.by_path.get(path_text(planned.path), []):
            if before.repeats is None and _succeeds(planned, before):
                return replace(planned, replaces=before.file_id)
        # A snapshot is of its time, whatever others hold.
        if planned.identity.ts is None and planned.size_bytes:
            return _rotated(planned, known, catalogue, options)
    except StorageError:
        raise
    except Exception as error:
        return _unreadable(planned.path, error)
    return planned


def _rotated(
    planned: PlannedFile, known: Known, catalogue: Catalogue, options: Options
) -> PlannedFile:
    """Say whether a file repeats or continues one that had another name."""
    folder, name = str(planned.path.parent), planned.path.name
    earlier = [
        file
        for other in earlier_names(name)
        for file in known.by_path.get(path_text(f"{folder}/{other}"), ())
    ]
    found = find_known(planned.path, earlier, planned.kept)
    if found is not None:
        before, all_of_it = found
        if all_of_it and _is_current(before, catalogue, options):
            return replace(planned, repeats=Repetition(before.path, before.size_bytes))
        return replace(planned, replaces=before.file_id)
    paths = [f"{folder}/{other}" for other in live_names(name)]
    found_live = [Path(path) for path in paths if path in known.found]
    live = find_live(planned.path, found_live, planned.kept)
    return replace(planned, repeats=live)


def plan_member(
    archive: PlannedFile, member: Member, told: Identity, catalogue: Catalogue, options: Options
) -> PlannedFile | FileOutcome:
    """Decide what a file of an archive is, as if the archive were a directory."""
    shown = Path(f"{archive.path}/{member.name.lstrip('/')}")
    problem = member.problem
    try:
        if problem is None:
            planned = _plan(shown, member.path, told, member.modified_us, catalogue, options)
            if planned.recognised.syntax != ARCHIVE:
                return planned
            problem = "an archive inside an archive: unpack it"
    except Exception as error:
        return _unreadable(shown, error)
    return FileOutcome(shown, problem=problem)


def _plan(
    shown: Path,
    path: Path,
    told: Identity,
    modified_us: int | None,
    catalogue: Catalogue,
    options: Options,
) -> PlannedFile:
    """Recognise the file at `path`, known to the user as `shown`, and name it by what it gives."""
    ends = read_ends(path)
    plain = _PACKED.sub("", path_text(shown))
    with cpu_limit(path):
        recognised = catalogue.recognise(ends, str(path) if is_parquet(ends) else plain)
    # No more than it has now: a log grows meanwhile. Files of /proc have 0 bytes and hold some.
    size_bytes = path.stat().st_size
    known = bool(recognised.names)
    content = digest(path, size_bytes or None) if known else digest_of_unknown(path, ends)
    identity = _identity(told, recognised, modified_us)
    formats = catalogue.named(recognised.names) or ()
    settings = _settings(catalogue, formats, options)
    from_path: dict[str, Any] = {}
    for format_ in recognised.formats:
        from_path.update(format_.fields_of_path(plain) or {})
    whose = [identity.device, identity.device_source, identity.port, identity.rank, identity.ts]
    deciding = json.dumps([content, settings, *whose, from_path], default=str)
    return PlannedFile(
        path=shown,
        file_id=hashlib.blake2b(deciding.encode(), digest_size=12).hexdigest(),
        content=content,
        settings=settings,
        size_bytes=size_bytes,
        modified_us=modified_us,
        identity=identity,
        told=told,
        from_path=from_path,
        recognised=recognised,
    )


def is_as_planned(planned: PlannedFile, path: Path) -> bool:
    """Say whether a file, once read at `path`, still begins with what was planned.

    If not, a rotation has put another in its place, and nobody knows which one was read.
    """
    try:
        stat = path.stat()
        if (stat.st_size, stat.st_mtime_ns // 1000) == (planned.size_bytes, planned.modified_us):
            return True
        if not planned.size_bytes:
            return stat.st_size == 0  # a file of /proc
        return digest(path, planned.size_bytes) == planned.content
    except OSError:
        return False


def _untouched(
    before: KnownFile, size: int, modified_us: int, catalogue: Catalogue, options: Options
) -> bool:
    return (
        before.size_bytes == size
        and before.modified is not None
        and int(before.modified.replace(tzinfo=UTC).timestamp() * 1_000_000 + 0.5) == modified_us
        and _is_current(before, catalogue, options)
    )


def _is_current(before: KnownFile, catalogue: Catalogue, options: Options) -> bool:
    """Say whether a file was read with the definitions and options of today."""
    formats = catalogue.named([name for name in before.formats.split(",") if name])
    return formats is not None and before.settings == _settings(catalogue, formats, options)


def _succeeds(planned: PlannedFile, before: KnownFile) -> bool:
    """Say whether a file is what another one became: more lines, or read with newer formats."""
    if planned.content == before.content:
        return True
    with local(planned.path, planned.kept) as here:
        if not before.formats and planned.size_bytes == before.size_bytes:
            # Of an unknown file the digest is another: that of its ends.
            return digest_of_unknown(here, read_ends(here)) == before.content
        return (
            planned.size_bytes > before.size_bytes
            and digest(here, before.size_bytes) == before.content
        )


def _settings(catalogue: Catalogue, formats: Sequence[Format], options: Options) -> str:
    return catalogue.settings(formats, {"job": options.job, "zone": options.zone})


def _identity(told: Identity, recognised: Recognised, modified_us: int | None) -> Identity:
    """Return what holds for the rows of a file, its time at worst that of the last change."""
    if recognised.syntax in CONTAINERS:
        return told
    if not recognised.takes_identity:
        return recognised.identity(told)
    if modified_us is None:
        return told
    if told.ts is not None and told.ts_source != "day":
        return told
    if told.ts is not None and not 0 <= modified_us - told.ts < _DAY_US:
        return told
    one_value = any(f.is_one_value for f in recognised.formats)
    # The files of one sysfs copy are written within seconds: they are one sample.
    ts = modified_us - modified_us % _MINUTE_US if one_value else modified_us
    return replace(told, ts=ts, ts_source="mtime")


def batches_of(plan: Iterable[PlannedFile]) -> Iterator[list[PlannedFile]]:
    """Group files in path order into batches of bounded size, each as soon as it is full."""
    batch: list[PlannedFile] = []
    size = 0
    for planned in plan:
        if batch and (size + planned.size_bytes > _BATCH_BYTES or len(batch) >= _BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(planned)
        size += planned.size_bytes
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
