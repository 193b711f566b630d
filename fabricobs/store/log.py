"""The log of a store: which batches are part of it, one version after another.

`STORE/_log/<version>.json` says which batches a version adds and which it takes out. It is created
once and never changed: whoever creates it has committed that version, and of two writers one is
told to look at what the other did and try the next one. Nothing else decides what a reader sees, so
that no lock is needed and a commit costs the same whatever the store holds. A checkpoint,
`<version>.all.json.gz`, is the sum of all versions up to its own; it is written by whoever finds
enough entries after the last one, and only saves time.
"""

import gzip
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import RLock
from typing import Any, NoReturn

from fabricobs.exceptions import UserError
from fabricobs.store.storage import Storage

LOG = "_log"
_LAYOUT = 2  # 1 had no log
_ENTRY = re.compile(rf"{LOG}/(\d{{12}})\.json")
_CHECKPOINT = re.compile(rf"{LOG}/(\d{{12}})\.all\.json\.gz")
_BATCH_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,254}")
# What a reader began with stays this long after it was taken out of the store.
KEPT_FOR_READERS = timedelta(hours=1)
# A checkpoint follows this many entries, or a tenth of the batches if that is more: the entries
# pay for the checkpoints in proportion to what they add, however large the store is.
_FEWEST_ENTRIES = 50
_OF_BATCHES = 10
_EPOCH = datetime(1970, 1, 1)


class StoreError(UserError):
    """A store that cannot be used; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part as it was written: its size in bytes and the XXH3 digest of its bytes."""

    size_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file whose rows a batch holds, as table `files` tells; `modified` is UTC, no zone."""

    batch: str
    file_id: str
    path: str
    size_bytes: int
    modified: datetime | None
    content: str
    settings: str
    formats: str
    replaces: str | None
    repeats: str | None = None
    device: str | None = None
    device_source: str | None = None  # None: a log, or read by an older release
    rows: int = 0
    problem: str | None = None


FILE_COLUMNS = tuple(name for name in KnownFile.__slots__ if name != "batch")
_NO_FILE = dict.fromkeys(FILE_COLUMNS)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: its parts by table, and the files whose rows they hold."""

    name: str
    parts: Mapping[str, Part] = field(default_factory=dict)
    files: tuple[KnownFile, ...] = ()
    version: int = 0  # that added it

    def key(self, table: str) -> str:
        """Return the key of a part."""
        return f"{self.name}/{table}.parquet"

    def keyed(self) -> dict[str, Part]:
        """Return the parts by their keys."""
        return {self.key(table): part for table, part in self.parts.items()}


@dataclass(frozen=True, slots=True)
class Change:
    """What a version does: the batches it adds, and the names of those it takes out."""

    adds: tuple[Batch, ...] = ()
    removes: tuple[str, ...] = ()


@dataclass(slots=True)
class Snapshot:
    """A store at one version. `removed` tells when batches went that a reader may still read."""

    version: int = 0
    batches: dict[str, Batch] = field(default_factory=dict)
    removed: dict[str, datetime] = field(default_factory=dict)
    batch_of_file: dict[str, str] = field(default_factory=dict)  # by file id

    def copy(self) -> "Snapshot":
        """Return a snapshot that later versions do not change."""
        return Snapshot(
            self.version, dict(self.batches), dict(self.removed), dict(self.batch_of_file)
        )

    def add(self, batch: Batch) -> None:
        """Add a batch."""
        self.batches[batch.name] = batch
        self.batch_of_file.update((file.file_id, batch.name) for file in batch.files)

    def remove(self, name: str, at: datetime) -> None:
        """Take out a batch."""
        self.removed[name] = at
        gone = self.batches.pop(name, None)
        for file in () if gone is None else gone.files:
            if self.batch_of_file.get(file.file_id) == name:
                del self.batch_of_file[file.file_id]

    def files(self) -> list[KnownFile]:
        """Return every file of which the store has rows or an account."""
        return [file for batch in self.batches.values() for file in batch.files]

    def replaced(self) -> dict[str, set[str]]:
        """Return by batch the ids of the files that a later one replaces: they do not count.

        A file that is read as it was before last (a definition or an option taken back) has its id
        of then: the file it replaces names that id as the one it replaced, and is the older one.
        """
        by_id = {file.file_id: file for file in self.files()}
        gone: dict[str, set[str]] = {}
        for file in by_id.values():
            other = by_id.get(file.replaces or "")
            if other is None or other is file:
                continue
            returned = other.replaces == file.file_id
            if not (returned and self._age(file) < self._age(other)):
                gone.setdefault(other.batch, set()).add(other.file_id)
        return gone

    def parts(self, table: str) -> dict[str, Part]:
        """Return the parts of a table by their keys, in order."""
        return {
            batch.key(table): batch.parts[table]
            for batch in self.batches.values()
            if table in batch.parts
        }

    def _age(self, file: KnownFile) -> tuple[int, str]:
        return self.batches[file.batch].version, file.batch


class Log:
    """The log below a storage, and the newest version this process has read; for any thread."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: Snapshot | None = None
        self._stamp: str | None = None  # of the first entry: another one is another store
        self._checkpoint = 0
        self._one_at_a_time = RLock()

    def exists(self) -> bool:
        """Say whether there is a log at all."""
        return self._storage.stat(_entry(0)) is not None

    def create(self) -> None:
        """Begin a log, unless there is one."""
        if not self.exists():
            first = {"layout": _LAYOUT, "store": secrets.token_hex(16)}
            self._storage.create(_entry(0), _as_json(first))

    def snapshot(self) -> Snapshot:
        """Return the newest version; StoreError where the log is damaged or of another layout."""
        with self._one_at_a_time:
            return self._newest().copy()

    def commit(self, change_of: Callable[[Snapshot], Change | None]) -> None:
        """Commit what a function makes of the newest version; nothing if that is None.

        It is asked again whenever another writer was first, and changes nothing of what it is
        shown.
        """
        with self._one_at_a_time:
            while True:
                seen = self._newest()
                change = change_of(seen)
                if change is None:
                    return
                document = {
                    "time": _microseconds(_now()),
                    "adds": [_of_batch(batch) for batch in change.adds],
                    "removes": list(change.removes),
                }
                if self._storage.create(_entry(seen.version + 1), _as_json(document)):
                    _apply(seen, document)
                    self._fold(seen)
                    return

    def forget(self, before: datetime) -> None:
        """Delete entries that a checkpoint made before `before` (UTC, no zone) sums up.

        The newest checkpoint stays with all after it: a reader may be on its way to it.
        """
        keys = self._storage.keys(LOG)
        for mark in reversed(_marks(keys)):
            if _time(self._document(_checkpoint(mark))["time"]) < before:
                summed = [key for key in keys if _entry(0) < key < _checkpoint(mark)]
                earlier = list(map(_checkpoint, _marks(summed)))
                self._storage.delete(earlier)  # first: `_follow` relies on it
                self._storage.delete([key for key in summed if key not in earlier])
                return

    def _newest(self) -> Snapshot:
        """Bring what is known to the newest version."""
        first = self._storage.stat(_entry(0))
        stamp = None if first is None else first.stamp
        known = self._known if stamp == self._stamp else None
        if known is None or not self._follow(known):
            known = self._listed(known)
        self._known, self._stamp = known, stamp
        return known

    def _follow(self, known: Snapshot) -> bool:
        """Apply the entries after a version; False if some of them may be summed up and gone.

        Entries go after the checkpoints before them: while one of these is there, all entries are.
        """
        while self._storage.stat(_entry(known.version + 1)) is not None:
            _apply(known, self._document(_entry(known.version + 1)))
        mark = self._checkpoint
        return 0 < mark <= known.version and self._storage.stat(_checkpoint(mark)) is not None

    def _listed(self, known: Snapshot | None) -> Snapshot:
        """Return the newest version by a list of the log, which takes longer the more it holds."""
        keys = self._storage.keys(LOG, after="" if known is None else _entry(known.version))
        entries = {int(found[1]) for key in keys if (found := _ENTRY.fullmatch(key))}
        self._checkpoint = max(_marks(keys), default=0 if known is None else self._checkpoint)
        # Of a process that slept, the entries it has not seen may be summed up and gone.
        if known is None or (self._checkpoint > known.version and known.version + 1 not in entries):
            known = self._begin()
        while known.version + 1 in entries:
            _apply(known, self._document(_entry(known.version + 1)))
        return known

    def _begin(self) -> Snapshot:
        """Return the newest checkpoint, or the empty store."""
        try:
            layout = self._document(_entry(0)).get("layout")
        except FileNotFoundError:
            raise StoreError("it has no log: it is no store, or of an older release") from None
        if layout != _LAYOUT:
            raise StoreError("written by a later release of fabricobs; use that one")
        found = Snapshot(self._checkpoint)
        if self._checkpoint:
            key = _checkpoint(self._checkpoint)
            document = self._document(key)
            try:
                found.removed.update((name, _time(at)) for name, at in document["removed"].items())
                for each in document["adds"]:
                    found.add(_batch(each))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                _damaged(key, error)
        return found

    def _document(self, key: str) -> dict[str, Any]:
        data = self._storage.read(key)
        try:
            text = gzip.decompress(data) if key.endswith(".gz") else data
            document = json.loads(text)
            if not isinstance(document, dict):
                raise TypeError(type(document).__name__)
        except (OSError, EOFError, ValueError, TypeError, RecursionError) as error:
            _damaged(key, error)
        return document

    def _fold(self, snapshot: Snapshot) -> None:
        """Write a checkpoint if enough entries have come since the last."""
        enough = max(_FEWEST_ENTRIES, len(snapshot.batches) // _OF_BATCHES)
        if snapshot.version - self._checkpoint < enough:
            return
        others = _marks(self._storage.keys(LOG, after=_checkpoint(self._checkpoint)))
        if others:
            self._checkpoint = max((m for m in others if m <= snapshot.version), default=0)
            return
        now = _now()
        removed = {n: at for n, at in snapshot.removed.items() if at > now - KEPT_FOR_READERS}
        document = {
            "time": _microseconds(now),
            "adds": [_of_batch(batch) for batch in snapshot.batches.values()],
            "removed": {name: _microseconds(at) for name, at in removed.items()},
        }
        data = gzip.compress(_as_json(document), compresslevel=1, mtime=0)
        self._storage.create(_checkpoint(snapshot.version), data)
        self._checkpoint = snapshot.version


def _apply(snapshot: Snapshot, document: dict[str, Any]) -> None:
    """Bring a snapshot to the next version."""
    version = snapshot.version + 1
    try:
        at = _time(document["time"])
        added = [replace(_batch(each), version=version) for each in document["adds"]]
        removes = [_named(name) for name in document["removes"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        _damaged(_entry(version), error)
    for name in removes:
        snapshot.remove(name, at)
    for batch in added:
        snapshot.add(batch)
    snapshot.version = version


def is_name(name: Any) -> bool:
    """Say whether something is the name of a batch, and leads nowhere else."""
    return isinstance(name, str) and _BATCH_NAME.fullmatch(name) is not None


def _named(name: Any) -> str:
    """Return the name of a batch; ValueError for what is none."""
    if not is_name(name):
        raise ValueError(f"{name!r} is no name of a batch")
    return str(name)


def _batch(document: dict[str, Any]) -> Batch:
    name, noted = _named(document["name"]), document["parts"]
    parts = {_named(t): Part(int(size), str(digest)) for t, (size, digest) in noted.items()}
    return Batch(
        name,
        parts,
        tuple(
            KnownFile(name, **{**_NO_FILE, **file, "modified": _maybe_time(file.get("modified"))})
            for file in document["files"]
        ),
        document.get("version", 0),
    )


def _of_batch(batch: Batch) -> dict[str, Any]:
    return {
        "name": batch.name,
        "parts": {table: [part.size_bytes, part.digest] for table, part in batch.parts.items()},
        "files": [_of_file(file) for file in batch.files],
        "version": batch.version,
    }


def _of_file(file: KnownFile) -> dict[str, Any]:
    told = {name: getattr(file, name) for name in FILE_COLUMNS}
    if file.modified is not None:
        told["modified"] = _microseconds(file.modified)
    return {name: value for name, value in told.items() if value is not None}


def _as_json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _entry(version: int) -> str:
    return f"{LOG}/{version:012d}.json"


def _checkpoint(version: int) -> str:
    return f"{LOG}/{version:012d}.all.json.gz"


def _marks(keys: Iterable[str]) -> list[int]:
    """Return the versions of the checkpoints among some keys, in the same order."""
    return [int(found[1]) for key in keys if (found := _CHECKPOINT.fullmatch(key))]


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _maybe_time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _time(microseconds)


def _damaged(key: str, error: Exception) -> NoReturn:
    text = f"{key} is damaged ({error}); `fabricobs verify --repair` makes the log anew"
    raise StoreError(text) from error
