"""The store on disk: batches of Parquet parts, each committed by one rename.

`STORE/<batch>/<table>.parquet` holds the rows of the files of one batch, for every table at once,
so that a killed ingest leaves either all rows of a file or none. The batch is named after the
content of its files; nothing of the moment of writing goes into it. `STORE/schema/` is a batch
without rows: it gives every table its columns before anything was ingested. A batch is on the disk,
its parts, their manifest and its name, when the call that makes it visible returns.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fabricobs.store.arrow import coded_schema, empty_table, table_schema
from fabricobs.store.compaction import finish, locked, write_note
from fabricobs.store.durable import publish, sync_tree
from fabricobs.store.inspection import refuse_links
from fabricobs.store.manifest import (
    PART,
    StoreError,
    batch_folders,
    refuse,
    refuse_damaged,
    write_manifest,
)
from fabricobs.store.session import is_store
from fabricobs.store.tables import TABLES
from fabricobs.store.workplaces import Workplace, remove_abandoned, take_out, workplace

# Sorts a missing number before every other.
_FIRST = -(1 << 62)
_LOOKED_AT = 4096
_KNOWN_COLUMNS = (
    "file_id",
    "path",
    "size_bytes",
    "modified",
    "content",
    "settings",
    "formats",
    "device",
    "device_source",
    "replaces",
    "repeats",
    "rows",
    "problem",
)


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file already in the store."""

    batch: str
    file_id: str
    path: str
    size_bytes: int
    modified: Any
    content: str
    settings: str
    formats: str
    replaces: str | None
    repeats: str | None = None  # a store of an older version has no such column
    device: str | None = None
    device_source: str | None = None  # None: a log, or read by an older release
    rows: int = 0
    problem: str | None = None


def _lacking(store: Path) -> list[str]:
    """Return the tables of which no schema batch of a store has every column."""
    known = sorted(store.glob("schema*"))
    return [
        table
        for table in TABLES
        if not any(
            set(table_schema(table).names) <= _columns(path)
            for batch in known
            if (path := batch / f"{table}.parquet").exists()
        )
    ]


def _columns(part: Path) -> set[str]:
    with parsing(part):
        return set(pq.read_schema(part).names)


def _schema_name(store: Path) -> str:
    """Return the name of the next schema batch: `schema`, then one that tells which columns."""
    if not is_store(store):
        return "schema"
    columns = "\n".join(f"{t} {' '.join(table_schema(t).names)}" for t in TABLES)
    return f"schema-{hashlib.blake2b(columns.encode(), digest_size=6).hexdigest()}"


# What PyArrow raises for a part that is no Parquet, or of other columns.
UNREADABLE = (pa.ArrowException, OSError, TypeError)


class Store:
    """A directory of batches."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Make the directory and its empty schema batch, unless they are there.

        A store of an older version gets a second one with the tables and columns it lacks.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            refuse_links(self.path)
            lacking = _lacking(self.path)
            if lacking:
                with BatchWriter(self) as batch:
                    for table in lacking:
                        batch.write(table, empty_table(table))
                    batch.close()
                    with self.locked():
                        batch.move_to(_schema_name(self.path))
        except OSError as error:
            raise StoreError(f"store {self.path}: {error.strerror or error}") from error

    def batches(self) -> list[str]:
        """Return the names of the committed batches."""
        return [folder.name for folder in batch_folders(self.path)]

    def known_files(self) -> list[KnownFile]:
        """Return every file whose rows are in the store; StoreError if a part cannot be read."""
        known: list[KnownFile] = []
        for batch in self.batches():
            part = self.path / batch / "files.parquet"
            try:
                with parsing(part), pq.ParquetFile(part) as file:
                    rows = file.read(columns=list(_KNOWN_COLUMNS)).to_pylist()
                    known.extend(KnownFile(batch=batch, **row) for row in rows)
            except FileNotFoundError:
                if (self.path / batch).is_dir():
                    continue
                # The batch went while we looked: what replaces it is there now.
                return self.known_files()
        return known

    def commit(self, batch: "BatchWriter", file_ids: Iterable[str]) -> None:
        """Make a written batch part of the store; files another writer has brought are left out."""
        batch.close()
        with self.locked():
            present = {known.file_id for known in self.known_files()}
            mine = set(file_ids)
            if not mine - present:
                batch.discard()
                return
            name = batch_name(mine - present)
            if mine & present:
                with BatchWriter(self) as fewer:
                    copy_rows(batch.directory, fewer, partial(without, mine & present))
                    fewer.move_to(name)
                batch.discard()
            else:
                batch.move_to(name)

    def append(self, name: str, tables: Mapping[str, pa.Table]) -> None:
        """Commit rows that come from no input file (findings) under a name of their own."""
        if (self.path / name).exists():
            return
        with BatchWriter(self) as batch:
            for table, rows in tables.items():
                batch.write(table, rows)
            batch.close()
            with self.locked():
                batch.move_to(name)

    def settle(self) -> None:
        """Finish what a kill has cut, and take out files that a later one replaces (grown logs).

        Safe to repeat. StoreError if a batch is damaged: what it holds is not known.
        """
        with self.locked():
            finish(self.path)
            refuse_damaged(self.path)
            known = self.known_files()
            gone = self._replaced(known)
            stale = [file for file in known if file.file_id in gone]
            for batch in sorted({file.batch for file in stale}):
                members = {file.file_id for file in known if file.batch == batch}
                self.drop(batch, members, members & gone)
        remove_abandoned(self.path)

    def _replaced(self, known: Sequence[KnownFile]) -> set[str]:
        """Return the ids of the files that a later one replaces.

        A file that is read as it was before last (a definition or an option taken back) has its id
        of then: the file it replaces names that id as the one it replaced, and is the older one.
        """
        by_id = {file.file_id: file for file in known}

        def age(file: KnownFile) -> tuple[int, str]:
            part = self.path / file.batch / "files.parquet"
            return part.stat().st_mtime_ns, file.batch

        gone: set[str] = set()
        for file in known:
            other = by_id.get(file.replaces or "")
            returned = other is not None and other.replaces == file.file_id
            if other is not None and not (returned and age(file) < age(other)):
                gone.add(other.file_id)
        return gone

    def drop(self, batch: str, members: set[str], gone: set[str]) -> None:
        """Take the rows of some files out of a batch; who calls holds the lock."""
        left = members - gone
        if left:
            with BatchWriter(self, replaces=[batch]) as writer:
                copy_rows(self.path / batch, writer, partial(without, gone))
                self.replace(writer, batch_name(left))
        else:
            take_out(self.path, batch)

    def replace(self, writer: "BatchWriter", name: str) -> None:
        """Put a written batch in the place of those it replaces; who calls holds the lock."""
        writer.move_to(name)
        finish(self.path)

    def workplace(self) -> AbstractContextManager[Path]:
        """Lend a directory nobody reads, on the store's disk; it is removed in the end."""
        return workplace(self.path)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the store while names change; released by the system if the process dies."""
        return locked(self.path)


class BatchWriter:
    """Writes the parts of one batch into a directory nobody reads yet; a failure discards it."""

    def __init__(self, store: Store, replaces: Sequence[str] = ()) -> None:
        self._workplace = Workplace(store.path)
        self.directory = self._workplace.path
        self._store = store
        self._replaces = list(replaces)
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.discard()

    def write(self, table: str, rows: pa.Table) -> None:
        """Append rows to the part of `table`, sorted as the table says, as one row group."""
        part = _sorted(table, _coded(table, rows))
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

    def close(self) -> None:
        """Finish the parts and wait until they are on the disk; safe to repeat."""
        if self._closed:
            return
        with self._naming_store():
            while self._writers:
                self._writers.popitem()[1].close()
        write_manifest(self.directory)
        if self._replaces:
            write_note(self.directory, self._replaces)
        sync_tree(self.directory)
        self._closed = True

    def move_to(self, name: str) -> None:
        """Rename the directory to its final name; if that batch is there, this one goes."""
        self.close()
        target = self._store.path / name
        if not target.exists():
            publish(self.directory, target)
        self._workplace.close()

    def discard(self) -> None:
        """Remove what was written."""
        for writer in self._writers.values():
            # A full disk refuses the footer too; what was written goes all the same.
            with suppress(OSError):
                writer.close()
        self._workplace.close()


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
    source: Path, writer: BatchWriter, change: Callable[[str, pa.Table], pa.Table]
) -> None:
    """Write the rows of a batch once more, those of each table as `change` returns them."""
    for part in sorted(source.glob(f"*{PART}")):
        rows = change(part.stem, read_part(part))
        if rows.num_rows:
            writer.write(part.stem, rows)


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


@contextmanager
def parsing(part: Path) -> Iterator[None]:
    """Raise StoreError that names the part if what is read in the block is damaged."""
    try:
        yield
    except UNREADABLE as error:
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
