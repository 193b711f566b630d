"""Verification of a store: every part is as it was written, and the accounts match the rows.

A damaged batch is taken out of the store as a whole: its inputs are then unknown to the store, and
the next ingest reads them again. A log that is damaged, or that an older release did not keep, is
made anew of the batches there are.
"""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from fabricobs.store import log
from fabricobs.store.arrow import table_schema
from fabricobs.store.integrity import digest_of, reason_of, wrong_digests, wrong_sizes
from fabricobs.store.location import shown
from fabricobs.store.log import FILE_COLUMNS, Change, KnownFile, Log, Part, StoreError, is_name
from fabricobs.store.parts import PART, Store, read_part
from fabricobs.store.reading import snapshot_of
from fabricobs.store.storage import DamagedPartError, Directory, storage_of
from fabricobs.store.tables import TABLES

# What PyArrow raises for a part that is no Parquet, or of other columns.
_UNREADABLE = (pa.ArrowException, OSError, TypeError)
# In a store of an older release: names the batches that a batch replaces.
_NOTE = "replaces.json"


@dataclass(slots=True)
class Batch:
    """A batch as it was found: faults, a line each; inputs by file id, None if they are not known.

    `doubled` are the files that an earlier batch holds too.
    """

    name: str
    parts: int = 0
    size_bytes: int = 0
    faults: list[str] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    doubled: set[str] = field(default_factory=set)

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "batch",
        "parts",
        "bytes",
        "files",
        "files that are in another",
        "faults",
    )

    def cells(self) -> tuple[object, ...]:
        """Return a row of a listing in a notebook."""
        counts = self.parts, self.size_bytes, len(self.inputs), len(self.doubled)
        return (self.name, *counts, "; ".join(self.faults) or None)


def verify(path: Path) -> list[Batch]:
    """Return every batch with its faults; StoreError if the log cannot be read."""
    found = [_verified(path, batch) for batch in snapshot_of(path).batches.values()]
    first: dict[str, str] = {}
    for batch in found:
        if not batch.faults:
            ids = batch.inputs
            batch.doubled = {i for i in ids if first.setdefault(i, batch.name) != batch.name}
    # A writer beside this one may have replaced a batch while we looked at it.
    still = snapshot_of(path).batches
    return [batch for batch in found if batch.name in still]


def repair(path: Path, found: Sequence[Batch]) -> list[Batch]:
    """Take damaged batches out, and rows that are there twice; return the batches taken out."""
    store = Store(path)
    damaged = [batch for batch in found if batch.faults]
    for batch in damaged:
        store.replace([batch.name], None)
    for batch in found:
        if batch.doubled:
            store.drop(store.snapshot().batches[batch.name], batch.doubled)
    store.settle()
    return damaged


def rebuild(path: Path) -> list[str]:
    """Make the log of a store anew of the batches there are; return what was left out, and why.

    What is in the place of the log is put aside. Batches that others had replaced less than an hour
    ago are taken in again: `repair` takes out what is there twice then.
    """
    storage = storage_of(path)
    if not isinstance(storage, Directory):
        raise StoreError(f"store {shown(path)}: ingest the logs anew, under another prefix")
    _put_aside(path)
    left_out: list[str] = []
    adds: list[log.Batch] = []
    names = storage.folders()
    replaced = {name for folder in names for name in _replaced_by(path / folder)}
    for name in names:
        if name.startswith("schema") or name in replaced or not any((path / name).glob(f"*{PART}")):
            continue
        if not is_name(name):
            left_out.append(f"{name!r} is no name of a batch")
            continue
        try:
            adds.append(_found(path / name))
        except _UNREADABLE as error:
            left_out.append(f"{name} cannot be read ({reason_of(error)})")
    made = Log(storage)
    made.create()
    if adds:
        made.commit(lambda _: Change(adds=tuple(adds)))
    return left_out


def _put_aside(path: Path) -> None:
    old = path / log.LOG
    if old.is_dir() and not old.is_symlink():
        places = (path / f"{log.LOG}.damaged-{n}" for n in count(1))
        old.rename(next(place for place in places if not place.exists()))
    else:
        old.unlink(missing_ok=True)


def _replaced_by(folder: Path) -> list[str]:
    """Return the batches that a compaction of an older release was about to remove."""
    with suppress(OSError, ValueError):
        names = json.loads((folder / _NOTE).read_bytes())
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return []


def _found(folder: Path) -> log.Batch:
    """Return a batch as its folder tells; raises one of _UNREADABLE for a part that is none."""
    parts: dict[str, Part] = {}
    files: list[dict[str, Any]] = []
    for part in sorted(folder.glob(f"*{PART}")):
        rows = read_part(part)
        parts[part.stem] = Part(part.stat().st_size, digest_of(part))
        if part.stem == "files":
            files = rows.select(FILE_COLUMNS).to_pylist()
    return log.Batch(folder.name, parts, tuple(KnownFile(folder.name, **row) for row in files))


def _verified(path: Path, batch: log.Batch) -> Batch:
    found = Batch(batch.name, inputs={file.file_id: file.path for file in batch.files})
    try:
        storage_of(path).fetch(batch.keyed(), anew=True)
    except DamagedPartError as error:
        found.faults.append(str(error))
        return found
    found.faults += wrong_sizes(path, batch) or wrong_digests(path, batch)
    counted: Counter[str] = Counter()
    for table, part in batch.parts.items():
        found.parts += 1
        found.size_bytes += part.size_bytes
        try:
            _count(path / batch.name / f"{table}{PART}", counted)
        except FileNotFoundError:
            continue  # told with the sizes
        except _UNREADABLE as error:
            found.faults.append(f"{batch.name}/{table}{PART} cannot be read ({reason_of(error)})")
    if not found.faults:
        found.faults += _compare_account(path / batch.name, counted)
    return found


def _count(part: Path, counted: Counter[str]) -> None:
    """Count the rows of a part by file; raises one of _UNREADABLE for no part of its table."""
    expected = table_schema(part.stem) if part.stem in TABLES else pa.schema([])
    with pq.ParquetFile(part) as file:
        for column in file.schema_arrow:
            index = expected.get_field_index(column.name)
            if index >= 0 and column.type != expected.field(index).type:
                raise TypeError(f"column {column.name} is {column.type}")
        if part.stem in {"files", "unparsed"} or "file_id" not in file.schema_arrow.names:
            return
        for rows in file.iter_batches(columns=["file_id"]):
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
