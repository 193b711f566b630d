"""Compaction beside readers: batches are immutable, a new one replaces others.

The new batch names those it replaces in `replaces.json`. It is renamed into place, the others are
removed, then the note. A kill in between leaves the note, and whoever uses the store next finishes.
Readers hold `STORE/.readers` shared while compaction holds it alone, so that no reader sees a row
twice or not at all.
"""

import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fabricobs import stopping
from fabricobs.exceptions import UserError
from fabricobs.store.durable import flocked, open_own, read_own, sync
from fabricobs.store.inspection import of_a_part, unreadable
from fabricobs.store.manifest import (
    StoreError,
    batch_folders,
    refuse,
    refuse_damaged,
    wrong_digests,
    wrong_sizes,
)
from fabricobs.store.workplaces import take_out

NOTE = "replaces.json"
_MOST_BYTES = 1 << 20
_BATCH_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,254}")
_LONGEST_WAIT_S = 60.0
_WAIT_STEP_S = 0.1


class BusyError(UserError):
    """A store that somebody has been reading for too long."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the store while names of batches change."""
    with flocked(path / ".lock"):
        yield


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Hold the store for reading: no compaction runs meanwhile. StoreError if it is damaged."""
    with held_by_readers(path):
        if replaced(path):
            _finish_left(path)
        refuse_damaged(path)
        try:
            yield
        except Exception as error:
            _name_damage(path, error)
            raise


def _finish_left(path: Path) -> None:
    """Finish a compaction that was cut off, in a reader; StoreError if it may not write."""
    try:
        with locked(path):
            finish(path)
    except OSError as error:
        raise StoreError(
            f"store {path}: a compaction was cut off, and this reader cannot finish it "
            f"({error.strerror}): rows would count twice; run `fabricobs prune --store {path}` "
            "as its owner"
        ) from error


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the store while nobody reads; BusyError if that takes longer than a minute."""
    give_up = time.monotonic() + _LONGEST_WAIT_S
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(flocked(path / ".readers", fcntl.LOCK_EX | fcntl.LOCK_NB))
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise BusyError(
                        f"store {path}: somebody has been reading it for a minute; try again later"
                    ) from None
                stopping.pause(_WAIT_STEP_S)
        yield


def write_note(directory: Path, names: list[str]) -> None:
    """Note the batches that an unfinished batch will replace."""
    (directory / NOTE).write_text(json.dumps(names), encoding="utf-8")


def finish(path: Path) -> None:
    """Remove the batches that others replace; who calls holds the lock of the store."""
    for batch, names in _notes(path):
        for name in names:
            take_out(path, name)
        # The note may go only when they have.
        sync(path)
        (batch / NOTE).unlink()


def replaced(path: Path) -> frozenset[str]:
    """Return the batches that are still there though others replace them."""
    return frozenset(name for _, names in _notes(path) for name in names)


def note_of(batch: Path) -> list[str]:
    """Return the batches that a batch replaces; ValueError unless all are batches beside it."""
    try:
        names = json.loads(read_own(batch / NOTE, _MOST_BYTES))
    except FileNotFoundError:
        return []
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{NOTE} is no list of batches") from error
    if not isinstance(names, list):
        raise ValueError(f"{NOTE} is no list of batches")
    for name in names:
        if not isinstance(name, str) or not _is_beside(batch, name):
            raise ValueError(f"{NOTE} names {name!r}, which is no other batch of this store")
    return names


def _notes(path: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield the batches that replace others; StoreError for a note that names anything else."""
    for batch in batch_folders(path):
        try:
            names = note_of(batch)
        except ValueError as error:
            refuse(path, f"{batch.name}/{error}")
        if names:
            yield batch, names


def _is_beside(batch: Path, name: str) -> bool:
    """Say whether a name is, or was, that of another batch of the store which may be replaced."""
    if _BATCH_NAME.fullmatch(name) is None or name.startswith("schema") or name == batch.name:
        return False
    other = batch.with_name(name)
    return not other.is_symlink() and (other.is_dir() or not other.exists())


@contextmanager
def held_by_readers(path: Path) -> Iterator[None]:
    """Hold the lock of readers; a store that cannot be written is held as far as it can be."""
    with ExitStack() as stack:
        for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
            try:
                opened = open_own(path / ".readers", flags)
            except OSError as error:
                if error.errno in {errno.ELOOP, errno.EINVAL}:
                    raise
                continue
            stack.callback(os.close, opened)
            fcntl.flock(opened, fcntl.LOCK_SH)
            break
        yield


def _name_damage(path: Path, error: BaseException) -> None:
    """Raise StoreError if DuckDB failed on a part of the store."""
    if not of_a_part(error):
        return
    for batch in batch_folders(path):
        for fault in (*wrong_sizes(batch), *wrong_digests(batch)):
            refuse(path, fault)
        # A batch without a manifest has no digests.
        for part in sorted(batch.glob("*.parquet")):
            reason = unreadable(part)
            if reason is not None:
                refuse(path, f"{batch.name}/{part.name} cannot be read: {reason}")
