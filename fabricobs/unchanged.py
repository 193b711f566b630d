"""Skip inputs whose `stat()` is that of the last ingest.

`STORE/.seen.json` keeps, of every file in the store, its size, the times of its last change and
status change in nanoseconds, and its inode; of an object its size, time and ETag, which are the
same for every machine. Only the system sets the second time, so a file that answers all four as
before holds what it held. A file changed within two seconds of being looked at is not noted: a
clock may tick more coarsely than a program writes.

What is noted counts only with the same settings (version, options, and the bytes of every
definition) over the same batches. In any doubt the files are looked at as if for the first time.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from fabricobs import __version__, content
from fabricobs.exceptions import UserError
from fabricobs.formats import ENGINE_VERSION
from fabricobs.inputs import FileOutcome, IngestReport, InputFile, Options
from fabricobs.store.integrity import refuse_damaged
from fabricobs.store.log import StoreError
from fabricobs.store.reading import snapshot_of
from fabricobs.store.storage import StorageError, storage_of

_NAME = ".seen.json"
_SETTLED_NS = 2_000_000_000

# Size, change, status change, inode; of an object size, change, ETag.
Look = tuple[int | str, ...]
# By path: the look taken before the file was read, and the names of its formats.
Notes = dict[str, tuple[int | str, ...]]


def look_at(file: InputFile) -> Look | None:
    """Return what shows that a file changes; None if it is gone, or changed a moment ago."""
    if file.listed is not None:
        return file.listed if file.listed[-1] else None
    now_ns = time.time_ns()
    try:
        stat = os.stat(file.name)  # noqa: PTH116 (a Path each costs more than the look)
    except OSError:
        return None
    if max(stat.st_mtime_ns, stat.st_ctime_ns) > now_ns - _SETTLED_NS:
        return None
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def report_of(files: Iterable[InputFile], noted: Notes) -> IngestReport | None:
    """Return the report of an ingest that has nothing to do; None if that is not sure."""
    outcomes: list[FileOutcome] = []
    for file in files:
        found = as_noted(file, look_at(file), noted)
        if found is None:
            return None
        outcomes += found
    if not outcomes:
        return None
    return IngestReport(sorted(outcomes, key=lambda outcome: str(outcome.path)))


def as_noted(file: InputFile, look: Look | None, noted: Notes) -> list[FileOutcome] | None:
    """Return the outcome of a file that looks as it did when it was noted; None for another."""
    note = noted.get(file.name)
    if note is None or note[:-1] != look:
        return None
    return [FileOutcome(file.path, tuple(str(note[-1]).split()), unchanged=True, stored=True)]


def load(store: Path, options: Options) -> Notes:
    """Return what is noted and still counts."""
    try:
        noted = json.loads(storage_of(store).read(_NAME))
        parts = _parts(store)
        if parts and noted["parts"] == parts and noted["settings"] == _settings(options):
            return {path: tuple(note) for path, note in noted["files"].items()}
    except (
        OSError, UserError, ValueError, KeyError, TypeError, AttributeError, RecursionError
    ):  # fmt: skip
        pass
    return {}


def keep(noted: Notes, store: Path, options: Options) -> None:
    """Keep notes of files whose rows are all in the store now."""
    document = {"settings": _settings(options), "parts": _parts(store), "files": noted}
    # Notes save time and nothing else: a store that cannot keep them is whole without.
    with suppress(OSError, StorageError):
        storage_of(store).replace(_NAME, json.dumps(document, separators=(",", ":")).encode())


def _settings(options: Options) -> str:
    """Digest what, besides its bytes, decides how a file is read."""
    deciding = (__version__, ENGINE_VERSION, options.job, options.zone, options.host_from)
    digest = hashlib.blake2b(json.dumps(deciding).encode(), digest_size=12)
    # Their bytes: the same definitions lie elsewhere, and have another time, on each machine.
    for name, path in content.files("ingest", ".toml", options.content).items():
        text = path.read_bytes()
        digest.update(f"\n{name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def _parts(store: Path) -> str:
    """Digest the names of the batches that hold files of the input."""
    try:
        seen = snapshot_of(store)
        refuse_damaged(store, seen)
    except StoreError:
        return ""
    names = sorted(batch.name for batch in seen.batches.values() if batch.files)
    return hashlib.blake2b(json.dumps(names).encode(), digest_size=12).hexdigest()
