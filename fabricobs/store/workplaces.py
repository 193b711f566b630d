"""Workplaces: directories of a store that no reader sees, for batches being written or removed.

`STORE/.incoming/<name>/` belongs to the process that holds the lock `STORE/.incoming/<name>.lock`.
The system frees the lock when that process dies, in whatever container or on whatever host of a
shared disk it ran; whoever can take it removes the workplace. The lock is there before the
directory and goes after it, so that a directory without one is left over. Workplaces stand two
levels down, where the pattern `STORE/*/<table>.parquet` does not reach.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fabricobs.store.durable import open_own, own_folder, publish, sync

INCOMING = ".incoming"


class Workplace:
    """A directory nobody else touches until it is closed; its content may be renamed away."""

    def __init__(self, store: Path) -> None:
        incoming = own_folder(store / INCOMING)
        self.path, self._lock = _locked_name(incoming)
        self.path.mkdir()

    def close(self) -> None:
        """Remove the directory, if it is still there; safe to repeat."""
        if self._lock < 0:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        _lock_of(self.path).unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = -1


@contextmanager
def workplace(store: Path) -> Iterator[Path]:
    """Lend a workplace; it is removed in the end."""
    place = Workplace(store)
    try:
        yield place.path
    finally:
        place.close()


def write_file(store: Path, target: Path, data: bytes) -> None:
    """Write a file of the store to the disk, all of it or nothing; OSError if there is no room."""
    with workplace(store) as folder:
        unfinished = folder / target.name
        unfinished.write_bytes(data)
        sync(unfinished)
        publish(unfinished, target)


def take_out(store: Path, batch: str) -> None:
    """Remove a batch: readers see all of it or nothing."""
    with workplace(store) as folder, suppress(FileNotFoundError):
        (store / batch).rename(folder / batch)


def remove_abandoned(store: Path) -> None:
    """Remove the workplaces of writers that were killed; those of living ones stay."""
    incoming = store / INCOMING
    if incoming.is_symlink() or not incoming.is_dir():
        return
    for name in {entry.name.removesuffix(".lock") for entry in os.scandir(incoming)}:
        with suppress(OSError):  # another process removes it, or it is that of another user
            _remove_if_abandoned(incoming / name)


def _remove_if_abandoned(directory: Path) -> None:
    lock = _lock_of(directory)
    try:
        opened = open_own(lock, os.O_RDWR)
    except FileNotFoundError:
        _remove(directory)
        return
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(directory)
        lock.unlink()
    finally:
        os.close(opened)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _locked_name(incoming: Path) -> tuple[Path, int]:
    """Return a directory, not made yet, and the descriptor that holds its lock."""
    while True:
        directory = incoming / secrets.token_hex(8)
        lock = open_own(_lock_of(directory), os.O_RDWR | os.O_CREAT | os.O_EXCL)
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever looks for abandoned ones may have taken a lock file that is not locked yet.
            if os.fstat(lock).st_nlink:
                return directory, lock
        os.close(lock)


def _lock_of(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.lock")
