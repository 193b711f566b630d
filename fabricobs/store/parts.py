"""The store: batches of Parquet parts, each committed by an entry of the log.

`STORE/<batch>/<table>.parquet` holds the rows of the files of one batch, for every table at once. A
batch is written where no reader looks, put in its place, and becomes part of the store by one entry
of the log, so that a killed ingest leaves either all rows of a file or none. All of it is on the
disk when the call that makes it visible returns.
"""

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fabricobs.store.arrow import coded_schema, table_schema
from fabricobs.store.inspection import refuse_links
from fabricobs.store.integrity import digest_of, parsing, refuse_damaged
from fabricobs.store.location import shown
from fabricobs.store.log import (
    FILE_COLUMNS,
    KEPT_FOR_READERS,
    Batch,
    Change,
    KnownFile,
    Log,
    Part,
    Snapshot,
    StoreError,
)
from fabricobs.store.reading import is_store
from fabricobs.store.storage import make_workplace, remove_abandoned, storage_of, workplace
from fabricobs.store.tables import TABLES

PART = ".parquet"
# Sorts a missing number before every other.
_FIRST = -(1 << 62)
_LOOKED_AT = 4096
_OWN_NAME = re.compile(r".+-[0-9a-f]{8}")  # as `BatchWriter.put` gives: a report's folders stay
# Nothing is written for so long between its first byte and its commit.
_ABANDONED_AFTER = timedelta(days=1)


class Store:
    """A directory of batches, and the log that says which of them count."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.storage = storage_of(path)
        self._log = _log_of(path.absolute())

    def create(self) -> None:
        """Make the directory and its log, unless they are there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            refuse_links(self.path)
            if not is_store(self.path):
                self._log.create()
        except OSError as error:
            raise StoreError(f"store {shown(self.path)}: {error.strerror or error}") from error

    def snapshot(self) -> Snapshot:
        """Return what the store holds now; StoreError where the log cannot be read."""
        try:
            return self._log.snapshot()
        except StoreError as error:
            raise StoreError(f"store {shown(self.path)}: {error}") from error

    def known_files(self) -> list[KnownFile]:
        """Return every file whose rows are in the store."""
        return self.snapshot().files()

    def commit(self, writer: "BatchWriter", file_ids: Iterable[str]) -> None:
        """Make a written batch part of the store; files another writer has brought are left out."""
        mine = set(file_ids)
        batch = writer.put(batch_name(mine))

        def change_of(seen: Snapshot) -> Change | None:
            nonlocal batch, mine
            present = mine & seen.batch_of_file.keys()
            if present:
                mine -= present
                fewer = self._without(batch, present) if mine else None
                self.storage.remove(batch.name)
                if fewer is None:
                    return None
                batch = fewer
            return Change(adds=(batch,))

        self._log.commit(change_of)

    def append(self, name: str, tables: Mapping[str, pa.Table]) -> None:
        """Commit rows that come from no input file (findings) under a name of their own."""
        with BatchWriter(self) as writer:
            for table, rows in tables.items():
                writer.write(table, rows)
            batch = writer.put(name)

        def change_of(seen: Snapshot) -> Change | None:
            if any(_is_named(known, name) for known in seen.batches):
                self.storage.remove(batch.name)
                return None
            return Change(adds=(batch,))

        self._log.commit(change_of)

    def settle(self, now: datetime | None = None) -> None:
        """Take out files that a later one replaces (grown logs), and what no reader needs any more.

        Safe to repeat. `now` is UTC without a zone. StoreError if a batch is damaged.
        """
        seen = self.snapshot()
        refuse_damaged(self.path, seen)
        for name, gone in seen.replaced().items():
            self.drop(seen.batches[name], gone)
        self.clear(now)

    def drop(self, batch: Batch, gone: set[str]) -> None:
        """Take the rows of some files out of a batch."""
        left = self._without(batch, gone) if {f.file_id for f in batch.files} - gone else None
        self.replace([batch.name], left)

    def replace(self, names: Iterable[str], batch: Batch | None) -> bool:
        """Put a batch in the place of others; False if another writer has replaced one of them."""
        removes = tuple(names)
        done = False

        def change_of(seen: Snapshot) -> Change | None:
            nonlocal done
            done = seen.batches.keys() >= set(removes)
            return Change(() if batch is None else (batch,), removes) if done else None

        self._log.commit(change_of)
        if not done and batch is not None:
            self.storage.remove(batch.name)
        return done

    def clear(self, now: datetime | None = None) -> None:
        """Remove what was taken out an hour ago, and what a writer left a day ago that was killed.

        Who began to read before that has an hour. `now` is UTC without a zone.
        """
        moment = now or datetime.now(UTC).replace(tzinfo=None)
        # The folders first: what is committed after this look is not in it.
        folders = self.storage.folders()
        seen = self.snapshot()
        for name in folders:
            if name in seen.batches:
                continue
            if name in seen.removed:
                goes = seen.removed[name] <= moment - KEPT_FOR_READERS
            else:
                ours = _OWN_NAME.fullmatch(name) is not None
                changed = self.storage.modified(name) if ours else None
                goes = changed is not None and changed <= moment - _ABANDONED_AFTER
            if goes:
                self.storage.remove(name)
        self._log.forget(moment - _ABANDONED_AFTER)
        remove_abandoned(self.path, moment - _ABANDONED_AFTER)

    def part(self, batch: Batch, table: str) -> Path:
        """Return the file of a part, fetched if need be."""
        key = batch.key(table)
        self.storage.fetch({key: batch.parts[table]})
        return self.path / key

    def workplace(self) -> AbstractContextManager[Path]:
        """Lend a directory nobody reads, on the store's disk; it is removed in the end."""
        return workplace(self.path)

    def _without(self, batch: Batch, gone: set[str]) -> Batch:
        """Return a new batch with the rows of another, except those of some files."""
        with BatchWriter(self) as writer:
            copy_rows(self, batch, writer, partial(without, gone))
            return writer.put(batch_name(f.file_id for f in batch.files if f.file_id not in gone))


@cache
def _log_of(path: Path) -> Log:
    """Return the log this process knows of a directory: a commit reads only what is new in it."""
    return Log(storage_of(path))


def _is_named(batch: str, name: str) -> bool:
    """Say whether a batch was put under a name; its own ends in a token."""
    return batch.rpartition("-")[0] == name


class BatchWriter:
    """Writes the parts of one batch into a directory nobody reads; a failure discards it."""

    def __init__(self, store: Store) -> None:
        self.directory = make_workplace(store.path)
        self._store = store
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._files: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.discard()

    def write(self, table: str, rows: pa.Table) -> None:
        """Append rows to the part of `table`, sorted as the table says, as one row group."""
        part = _sorted(table, _coded(table, rows))
        if table == "files":
            self._files += part.select(FILE_COLUMNS).to_pylist()
        with self._naming_store():
            self._writer(table, part).write_table(part, row_group_size=1 << 20)

    def _writer(self, table: str, part: pa.Table) -> pq.ParquetWriter:
        """Return the writer of a table's part; its encoding is chosen by the first rows."""
        writer = self._writers.get(table)
        if writer is None:
            differing = [field.name for field in part.schema if _mostly_differs(part[field.name])]
            writer = self._writers[table] = pq.ParquetWriter(
                self.directory / f"{table}.parquet",
                part.schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=[name for name in part.schema.names if name not in differing],
                column_encoding=dict.fromkeys(differing, "DELTA_BINARY_PACKED") or None,
                write_statistics=[n for n in {"ts", *TABLES[table].sort} if n in part.schema.names],
                # Readers see plain texts.
                store_schema=False,
            )
        return writer

    @contextmanager
    def _naming_store(self) -> Iterator[None]:
        """Name the store in errors of PyArrow, which name no file."""
        try:
            yield
        except OSError as error:
            if error.errno is None or error.filename is not None:
                raise
            raise OSError(error.errno, os.strerror(error.errno), str(self._store.path)) from error

    def put(self, name: str) -> Batch:
        """Finish the parts and put them in their place, on the disk, for a commit to name.

        The name gets a token: two writers never write to the same place.
        """
        with self._naming_store():
            while self._writers:
                self._writers.popitem()[1].close()
        own_name = f"{name}-{secrets.token_hex(4)}"
        parts = {
            path.stem: Part(path.stat().st_size, digest_of(path))
            for path in sorted(self.directory.glob(f"*{PART}"))
        }
        files = tuple(KnownFile(own_name, **row) for row in self._files)
        self._store.storage.put_folder(self.directory, own_name)
        return Batch(own_name, parts, files)

    def discard(self) -> None:
        """Remove what was written."""
        for writer in self._writers.values():
            # A full disk refuses the footer too; what was written goes all the same.
            with suppress(OSError):
                writer.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def _sorted(table: str, rows: pa.Table) -> pa.Table:
    if rows.num_rows < 2:
        return rows
    keys = [_sort_key(rows[name]) for name in TABLES[table].sort]
    if _is_sorted(keys):
        return rows
    return rows.take(np.lexsort(keys[::-1]))


def _sort_key(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return whole numbers that order as the values do, missing ones first."""
    values = column.combine_chunks()
    if pa.types.is_dictionary(values.type):
        places = np.argsort(np.argsort(values.dictionary.to_numpy(zero_copy_only=False)))
        codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        # An index of -1 reads the last place: -1 again.
        return np.asarray(np.append(places, -1)[codes], np.int64)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return np.asarray(values.fill_null(_FIRST).to_numpy(zero_copy_only=False), np.int64)


def _is_sorted(keys: list[NDArray[np.int64]]) -> bool:
    """Say whether rows are in order by the keys, the first one deciding most."""
    undecided: NDArray[np.bool_] | None = None  # None: all of them
    for key in keys:
        later, earlier = key[1:], key[:-1]
        equal = later == earlier
        if equal.all():
            continue
        falling = later < earlier
        if (falling if undecided is None else falling & undecided).any():
            return False
        undecided = equal if undecided is None else undecided & equal
        if not undecided.any():
            break
    return True


def _mostly_differs(column: pa.ChunkedArray) -> bool:
    """Say whether a column of whole numbers is better told by differences than by codes."""
    if not (pa.types.is_int64(column.type) or pa.types.is_timestamp(column.type)):
        return False
    first = column[:_LOOKED_AT]
    return len(first) == _LOOKED_AT and len(pc.unique(first)) > _LOOKED_AT // 2


def _coded(table: str, rows: pa.Table) -> pa.Table:
    """Return the rows with texts as codes, as they go to Parquet."""
    schema = coded_schema(table)
    if rows.schema.equals(schema):
        return rows
    columns = [
        column if column.type == field.type else column.dictionary_encode().cast(field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def batch_name(file_ids: Iterable[str]) -> str:
    """Return the name of a batch of some files."""
    text = "\n".join(sorted(file_ids))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def copy_rows(
    store: Store, batch: Batch, writer: BatchWriter, change: Callable[[str, pa.Table], pa.Table]
) -> None:
    """Write the rows of a batch once more, those of each table as `change` returns them."""
    for table in batch.parts:
        rows = change(table, read_part(store.part(batch, table)))
        if rows.num_rows:
            writer.write(table, rows)


def without(file_ids: set[str], table: str, rows: pa.Table) -> pa.Table:
    """Return the rows of a table except those of some files."""
    if "file_id" not in rows.column_names:
        return rows
    return rows.filter(
        pc.invert(pc.is_in(rows["file_id"], value_set=pa.array(sorted(file_ids), pa.string())))
    )


def read_part(part: Path) -> pa.Table:
    """Read a part with the columns of today: those it lacks are null.

    StoreError for a table or column of a later release: its rows would be lost.
    """
    schema = table_schema(part.stem) if part.stem in TABLES else pa.schema([])
    with parsing(part):
        rows = pq.read_table(part)
        if not set(rows.column_names) <= set(schema.names):
            raise StoreError(f"{part}: written by a later release of fabricobs; use that one")
        columns = [
            rows[field.name].cast(field.type)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)
