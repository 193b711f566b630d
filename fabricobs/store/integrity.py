"""Integrity of the parts of a store: their sizes and digests are those in its log.

Sizes are compared before a store is used, digests by `fabricobs verify`. A bit flipped in a part is
a wrong value to DuckDB more often than an error.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import xxhash

from fabricobs.store.durable import open_own
from fabricobs.store.inspection import of_a_part, unreadable
from fabricobs.store.location import shown
from fabricobs.store.log import Batch, Snapshot, StoreError
from fabricobs.store.storage import storage_of

_BLOCK_BYTES = 1 << 20


def digest_of(path: Path) -> str:
    """Return the XXH3 digest of a file's bytes."""
    digest = xxhash.xxh3_128()
    with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def wrong_sizes(store: Path, batch: Batch) -> list[str]:
    """Return what is wrong with the parts of a batch, as their names and sizes show it."""
    wrong, parts = [], batch.keyed()
    for name in storage_of(store).at_hand(list(parts)):
        part = parts[name]
        try:
            size_bytes = (store / name).lstat().st_size
        except FileNotFoundError:
            wrong.append(f"{name} is missing")
            continue
        if (store / name).is_symlink():
            wrong.append(f"{name} is a symbolic link")
        elif size_bytes != part.size_bytes:
            wrong.append(f"{name} has {size_bytes:,} bytes, {part.size_bytes:,} were written")
    return wrong


def wrong_digests(store: Path, batch: Batch) -> list[str]:
    """Return which parts of a batch hold other bytes than were written; reads all of them."""
    wrong = []
    for name, part in batch.keyed().items():
        with suppress(FileNotFoundError):
            if digest_of(store / name) != part.digest:
                wrong.append(f"{name} holds other bytes than were written")
    return wrong


def refuse_damaged(store: Path, seen: Snapshot) -> None:
    """Raise StoreError if a part of the store is missing or has another size than was written."""
    for batch in seen.batches.values():
        for fault in wrong_sizes(store, batch):
            refuse(store, fault)


def refuse(store: Path, fault: str) -> NoReturn:
    """Raise the StoreError that names a damaged part and what mends it."""
    place = shown(store)
    raise StoreError(f"store {place}: {fault}; run `fabricobs verify --store {place} --repair`")


def name_damage(store: Path, seen: Snapshot, error: BaseException) -> None:
    """Raise StoreError if DuckDB failed on a part of the store."""
    if not of_a_part(error):
        return
    for batch in seen.batches.values():
        for fault in (*wrong_sizes(store, batch), *wrong_digests(store, batch)):
            refuse(store, fault)
        for key in storage_of(store).at_hand(list(batch.keyed())):
            reason = unreadable(store / key)
            if reason is not None:
                refuse(store, f"{key} cannot be read: {reason}")


@contextmanager
def parsing(part: Path) -> Iterator[None]:
    """Raise StoreError that names the part if what is read in the block is damaged."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, TypeError) as error:
        fault = f"{part.parent.name}/{part.name} cannot be read ({reason_of(error)})"
        refuse(part.parent.parent, fault)


def reason_of(error: Exception) -> str:
    """Return why a part cannot be decoded; raises an error that is not the part's."""
    # For what it cannot decode, and for what is not there, PyArrow raises an OSError of its own
    # without a number.
    gone = isinstance(error, FileNotFoundError)
    if gone or (isinstance(error, OSError) and error.errno not in {None, errno.EIO}):
        raise error
    return str(error).partition("\n")[0]
