"""Verification of a store: every part is as it was written, and the accounts match the rows.

A damaged batch is put aside as a whole, in `STORE/.damaged/`: its inputs are then unknown to the
store, and the next ingest reads them again.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fabricobs.store.arrow import table_schema
from fabricobs.store.compaction import alone, finish, held_by_readers, locked, note_of
from fabricobs.store.durable import own_folder, sync
from fabricobs.store.manifest import (
    MANIFEST,
    PART,
    StoreError,
    batch_folders,
    wrong_digests,
    wrong_sizes,
)
from fabricobs.store.parts import UNREADABLE, Store, reason_of
from fabricobs.store.tables import TABLES

DAMAGED = ".damaged"


@dataclass(slots=True)
class Batch:
    """A batch as it was found: faults, a line each; inputs by file id, None if they are not known.

    `doubled` are the files that an earlier batch holds too, `unchecked` says why nobody can tell
    whether the parts are as they were written.
    """

    name: str
    parts: int = 0
    size_bytes: int = 0
    faults: list[str] = field(default_factory=list)
    inputs: dict[str, str] | None = field(default_factory=dict)
    doubled: set[str] = field(default_factory=set)
    unchecked: str | None = None


@dataclass(frozen=True, slots=True)
class PutAside:
    """A batch put aside: where it is now, and its inputs; None if they are not known."""

    place: Path
    inputs: tuple[Path, ...] | None


def verify(path: Path) -> list[Batch]:
    """Return every batch with its faults; OSError if the store may not be read."""
    with held_by_readers(path):
        with suppress(StoreError, OSError), locked(path):
            finish(path)  # a note that is damaged is told below
        found = [_verified(folder) for folder in folders(path)]
        _find_doubled(path, found)
    return [batch for batch in found if os.path.lexists(path / batch.name)]


def repair(path: Path, found: Iterable[Batch]) -> list[PutAside]:
    """Put the damaged batches aside and take out rows that are there twice.

    BusyError if readers hold the store for longer than a minute.
    """
    store = Store(path)
    moved = []
    with alone(path), locked(path):
        for batch in found:
            if batch.faults:
                inputs = None if batch.inputs is None else tuple(map(Path, batch.inputs.values()))
                moved.append(PutAside(_put_aside(path, batch.name), inputs))
        for batch in found:
            if batch.doubled and batch.inputs is not None:
                store.drop(batch.name, set(batch.inputs), batch.doubled)
    store.create()
    store.settle()
    return moved


def folders(path: Path) -> Iterator[Path]:
    """Yield what may be a batch; symbolic links too, which none may be."""
    yield from batch_folders(path)
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if entry.is_symlink() and not entry.name.startswith(".") and entry.is_dir():
            yield path / entry.name


def _verified(folder: Path) -> Batch:
    batch = Batch(folder.name)
    if folder.is_symlink():
        batch.faults.append(f"{folder.name} is a symbolic link, no batch")
        return batch
    try:
        note_of(folder)
    except ValueError as error:
        batch.faults.append(f"{folder.name}/{error}")
    wrong = wrong_sizes(folder) or wrong_digests(folder)
    batch.faults += wrong
    if not (folder / MANIFEST).exists():
        batch.unchecked = f"{folder.name} cannot be checked: it has no {MANIFEST} with its digests"
    counted: Counter[str] = Counter()
    whole = not wrong and batch.unchecked is None
    for part in sorted(folder.glob(f"*{PART}")):
        try:
            batch.parts += 1
            batch.size_bytes += part.stat().st_size
            _count(part, counted, every_column=not whole)
        except FileNotFoundError:
            continue  # a writer has replaced the batch meanwhile
        except UNREADABLE as error:
            batch.faults.append(f"{folder.name}/{part.name} cannot be read ({reason_of(error)})")
    if not batch.faults:
        batch.faults += _compare_account(folder, counted)
    batch.inputs = _inputs(folder, counted)
    return batch


def _count(part: Path, counted: Counter[str], *, every_column: bool) -> None:
    """Count the rows of a part by file; raises one of UNREADABLE for what is no part of its table.

    With `every_column` all are read: no digest tells that the bytes are as written.
    """
    expected = table_schema(part.stem) if part.stem in TABLES else pa.schema([])
    with pq.ParquetFile(part) as file:
        for column in file.schema_arrow:
            index = expected.get_field_index(column.name)
            if index >= 0 and column.type != expected.field(index).type:
                raise TypeError(f"column {column.name} is {column.type}")
        names = file.schema_arrow.names if every_column else {"file_id"} & set(expected.names)
        for rows in file.iter_batches(columns=list(names)):
            if "file_id" in rows.schema.names and part.stem not in {"files", "unparsed"}:
                counts = rows.column("file_id").value_counts()
                counted.update({row["values"]: row["counts"] for row in counts.to_pylist()})


def _compare_account(folder: Path, counted: Counter[str]) -> list[str]:
    """Return how the rows of a batch differ from its account in `files`."""
    account = folder / "files.parquet"
    rows = pq.read_table(account).to_pylist() if account.exists() else []
    faults = [
        f"{folder.name} has {counted[row['file_id']]} rows of {row['path']}, "
        f"its account says {expected}"
        for row in rows
        if counted[row["file_id"]] != (expected := 0 if row.get("pruned") else row.get("rows"))
    ]
    unknown = counted.keys() - {row["file_id"] for row in rows}
    if unknown:
        faults.append(f"{folder.name} has rows of {len(unknown):,} files that its account lacks")
    return faults


def _inputs(folder: Path, counted: Counter[str]) -> dict[str, str] | None:
    """Return the paths of a batch's inputs by file id; None if its account cannot be read."""
    account = folder / "files.parquet"
    try:
        rows = pq.read_table(account, columns=["file_id", "path"]).to_pylist()
        return {row["file_id"]: row["path"] for row in rows}
    except FileNotFoundError:
        return None if counted else {}  # findings have no inputs
    except (*UNREADABLE, KeyError) as error:
        reason_of(error)
        return None


def _find_doubled(path: Path, found: Sequence[Batch]) -> None:
    """Note the files that more than one batch holds; a writer must not be between two steps."""
    with ExitStack() as stack:
        with suppress(OSError):  # who may not write looks without the lock
            stack.enter_context(locked(path))
        first: dict[str, str] = {}
        for batch in found:
            if (path / batch.name).is_dir() and not batch.faults:
                ids = batch.inputs or {}
                batch.doubled = {i for i in ids if first.setdefault(i, batch.name) != batch.name}


def _put_aside(path: Path, name: str) -> Path:
    """Move a batch to where no reader looks; its name gets a number if that is taken."""
    folder = own_folder(path / DAMAGED)
    places = (folder / (f"{name}-{n}" if n else name) for n in count())
    place = next(place for place in places if not os.path.lexists(place))
    (path / name).rename(place)
    sync(folder)
    sync(path)
    return place
