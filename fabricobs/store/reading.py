"""Reading a store: a reader keeps the version it began with, whatever writers do meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabricobs.store.integrity import name_damage, refuse_damaged
from fabricobs.store.location import shown
from fabricobs.store.log import Log, Snapshot, StoreError
from fabricobs.store.storage import Directory, storage_of


def is_store(path: Path) -> bool:
    """Say whether a directory is a store; StoreError for one of an older release, without a log."""
    storage = storage_of(path)
    if isinstance(storage, Directory) and not path.is_dir():
        return False
    if Log(storage).exists():
        return True
    if isinstance(storage, Directory) and any(path.glob("*/files.parquet")):
        raise StoreError(
            f"store {path}: of an older release; `fabricobs verify --store {path} --repair` makes "
            "it one of this release"
        )
    return False


def snapshot_of(path: Path) -> Snapshot:
    """Return what a store holds now; StoreError where its log cannot be read."""
    try:
        return Log(storage_of(path)).snapshot()
    except StoreError as error:
        raise StoreError(f"store {shown(path)}: {error}") from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Check a store before it is read; StoreError names a part that is damaged."""
    refuse_damaged(path, snapshot_of(path))
    try:
        yield
    except Exception as error:
        name_damage(path, snapshot_of(path), error)
        raise
