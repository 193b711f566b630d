"""The storage of a store: a directory or an object store, behind one interface.

An object is written whole or not at all. What counts is written once only: parts never change, and
of two writers who create the same key one is told so. Nothing here needs a lock. A key is a path
below the directory or prefix, such as `_log/000000000007.json`.
"""

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fabricobs.exceptions import UserError
from fabricobs.store.durable import limit_access, own_folder, publish, read_own, sync, sync_tree
from fabricobs.store.location import address_of

if TYPE_CHECKING:
    from fabricobs.store.log import Part

INCOMING = ".incoming"
_MOST_BYTES = 1 << 30


class StorageError(UserError):
    """A storage that does not answer; the text names it and says what to do."""


class RefusedError(StorageError):
    """A storage that does not let this user have an object."""


class DamagedPartError(UserError):
    """A part that is not there, or not as it was written; the text says what mends it."""


@dataclass(frozen=True, slots=True)
class Stat:
    """The bytes of an object, and a stamp that another object of the same key does not have."""

    size_bytes: int
    stamp: str


class Storage(Protocol):
    """What a store asks. What a call has written outlives the process when it returns."""

    path: Path  # where this machine finds the parts that were fetched

    def read(self, key: str) -> bytes:
        """Return an object; FileNotFoundError if there is none."""

    def create(self, key: str, data: bytes) -> bool:
        """Write an object; False if another writer has."""

    def replace(self, key: str, data: bytes) -> None:
        """Write an object in the place of what there is: of several writers the last one counts."""

    def keys(self, folder: str, after: str = "") -> list[str]:
        """Return the objects of a folder by their keys, in order, those after a key."""

    def folders(self) -> list[str]:
        """Return the names of the folders that may be batches, in order."""

    def modified(self, folder: str) -> datetime | None:
        """Return when something in a folder was changed last, UTC without a zone."""

    def stat(self, key: str) -> Stat | None:
        """Return what is known of an object; None if there is none."""

    def put_folder(self, written: Path, name: str) -> None:
        """Take the files of a workplace as a folder."""

    def remove(self, folder: str) -> None:
        """Remove a folder."""

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects."""

    def fetch(self, parts: "Mapping[str, Part]", *, anew: bool = False) -> None:
        """Bring parts below `path`, by key; `anew`: even those that are there."""

    def at_hand(self, keys: Sequence[str]) -> list[str]:
        """Return the keys of the parts that should be below `path`."""


@cache
def storage_of(path: Path) -> Storage:
    """Return the storage of a store by its directory on this machine."""
    if address_of(path) is None:
        return Directory(path)
    from fabricobs.store.objects import Objects

    return Objects(path)


class Directory:
    """A directory. What a call has written is on the disk when it returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, key: str) -> bytes:
        """Return a file; FileNotFoundError if there is none."""
        return read_own(self.path / key, _MOST_BYTES)

    def create(self, key: str, data: bytes) -> bool:
        """Write a file and give it its name, which no other writer then can."""
        target = self.path / key
        made = not target.parent.exists()
        own_folder(target.parent)
        if made:
            limit_access(target.parent, self.path)
        with workplace(self.path) as folder:
            unfinished = folder / target.name
            unfinished.write_bytes(data)
            limit_access(unfinished, target.parent)
            sync(unfinished)
            try:
                os.link(unfinished, target)
            except FileExistsError:
                return False
        sync(target.parent)
        return True

    def replace(self, key: str, data: bytes) -> None:
        """Write a file and rename it over what there is."""
        write_file(self.path, self.path / key, data)

    def keys(self, folder: str, after: str = "") -> list[str]:
        """Return the files of a folder by their keys."""
        try:
            names = [f"{folder}/{entry.name}" for entry in os.scandir(self.path / folder)]
        except FileNotFoundError:
            return []
        return sorted(name for name in names if name > after)

    def folders(self) -> list[str]:
        """Return the directories that may be batches; symbolic links are none."""
        return sorted(
            entry.name
            for entry in os.scandir(self.path)
            if entry.name[0] not in "._" and entry.is_dir(follow_symlinks=False)
        )

    def modified(self, folder: str) -> datetime | None:
        """Return when a directory was changed last; None if another process has removed it."""
        try:
            changed = (self.path / folder).lstat().st_mtime
        except FileNotFoundError:
            return None
        return datetime.fromtimestamp(changed, UTC).replace(tzinfo=None)

    def stat(self, key: str) -> Stat | None:
        """Return the size of a file, and its inode and time of change as its stamp."""
        try:
            found = (self.path / key).lstat()
        except FileNotFoundError:
            return None
        return Stat(found.st_size, f"{found.st_ino}-{found.st_ctime_ns}")

    def put_folder(self, written: Path, name: str) -> None:
        """Rename a workplace on the same disk to its final name."""
        sync_tree(written)
        publish(written, self.path / name)

    def remove(self, folder: str) -> None:
        """Take a directory out of sight, then remove it."""
        with workplace(self.path) as place, suppress(FileNotFoundError):
            (self.path / folder).rename(place / "removed")

    def delete(self, keys: Sequence[str]) -> None:
        """Remove files."""
        for key in keys:
            (self.path / key).unlink(missing_ok=True)

    def fetch(self, parts: "Mapping[str, Part]", *, anew: bool = False) -> None:
        """Do nothing: they are there."""

    def at_hand(self, keys: Sequence[str]) -> list[str]:
        """Return all of them."""
        return list(keys)


def make_workplace(store: Path) -> Path:
    """Return a new directory that no reader sees, on the disk of the store."""
    # Not `mkdtemp`: its directories are open to their owner alone, and this one becomes a batch.
    folder = own_folder(store / INCOMING) / secrets.token_hex(8)
    folder.mkdir()
    return folder


@contextmanager
def workplace(store: Path) -> Iterator[Path]:
    """Lend a directory that no reader sees, on the disk of the store; it is removed in the end."""
    folder = make_workplace(store)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_file(store: Path, target: Path, data: bytes) -> None:
    """Write a file of the store to the disk, all of it or nothing; OSError if there is no room."""
    with workplace(store) as folder:
        unfinished = folder / target.name
        unfinished.write_bytes(data)
        sync(unfinished)
        publish(unfinished, target)


def remove_abandoned(store: Path, before: datetime) -> None:
    """Remove the workplaces that nobody has changed since `before` (UTC, no zone).

    A living writer changes its workplace with every table it begins or ends.
    """
    incoming = store / INCOMING
    if incoming.is_symlink() or not incoming.is_dir():
        return
    for entry in os.scandir(incoming):
        with suppress(OSError):  # another process removes it, or it is that of another user
            if _changed(entry) < before.replace(tzinfo=UTC).timestamp():
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    Path(entry.path).unlink()


def _changed(entry: "os.DirEntry[str]") -> float:
    """Return when a workplace, or a file directly in it, was changed last."""
    times = [entry.stat(follow_symlinks=False).st_mtime]
    if entry.is_dir(follow_symlinks=False):
        times += [inner.stat(follow_symlinks=False).st_mtime for inner in os.scandir(entry)]
    return max(times)
