"""The store on disk: batches of Parquet parts, each committed by one rename.

`STORE/<batch>/<table>.parquet` holds the rows of the files of one batch, for every table at once,
so that a killed ingest leaves either all rows of a file or none. The batch is named after the
content of its files; nothing of the moment of writing goes into it. `STORE/schema/` is a batch
without rows: it gives every table its columns before anything was ingested.
"""

import fcntl
import hashlib
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fabricobs.errors import UserError
from fabricobs.store.arrow import coded_schema, empty_table, table_schema
from fabricobs.store.session import is_store
from fabricobs.store.tables import TABLES

# Two levels down, where the pattern STORE/*/<table>.parquet does not reach.
_INCOMING = ".incoming"
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
    "replaces",
)


class StoreError(UserError):
    """A store that cannot be used; the text says what to do."""


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


def _lacking(store: Path) -> list[str]:
    """Return the tables of which no schema batch of a store has every column."""
    known = sorted(store.glob("schema*"))
    return [
        table
        for table in TABLES
        if not any(
            set(table_schema(table).names) <= set(pq.read_schema(path).names)
            for batch in known
            if (path := batch / f"{table}.parquet").exists()
        )
    ]


def _schema_name(store: Path) -> str:
    """Return the name of the next schema batch: `schema`, then one that tells which columns."""
    if not is_store(store):
        return "schema"
    columns = "\n".join(f"{t} {' '.join(table_schema(t).names)}" for t in TABLES)
    return f"schema-{hashlib.blake2b(columns.encode(), digest_size=6).hexdigest()}"


class Store:
    """A directory of batches."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Make the directory and its empty schema batch, unless they are there.

        A store of an older version gets a second one with the tables and columns it lacks.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lacking = _lacking(self.path)
            if lacking:
                batch = BatchWriter(self)
                for table in lacking:
                    batch.write(table, empty_table(table))
                with self.locked():
                    batch.move_to(_schema_name(self.path))
        except OSError as error:
            raise StoreError(f"store {self.path}: {error.strerror or error}") from error
        self._remove_abandoned()

    def batches(self) -> list[str]:
        """Return the names of the committed batches."""
        return sorted(
            entry.name
            for entry in self.path.iterdir()
            if entry.is_dir() and not entry.name.startswith(".")
        )

    def known_files(self) -> list[KnownFile]:
        """Return every file whose rows are in the store."""
        known: list[KnownFile] = []
        for batch in self.batches():
            part = self.path / batch / "files.parquet"
            try:
                with pq.ParquetFile(part) as file:
                    rows = file.read(columns=list(_KNOWN_COLUMNS)).to_pylist()
            except FileNotFoundError:
                if (self.path / batch).is_dir():
                    continue
                # The batch went while we looked: what stands for it is there now.
                return self.known_files()
            known.extend(KnownFile(batch=batch, **row) for row in rows)
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
            if mine & present:
                drop_rows(batch.directory, mine & present)
            batch.move_to(batch_name(mine - present))

    def append(self, name: str, tables: Mapping[str, pa.Table]) -> None:
        """Commit rows that come from no input file (findings) under a name of their own."""
        if (self.path / name).exists():
            return
        batch = BatchWriter(self)
        for table, rows in tables.items():
            batch.write(table, rows)
        batch.close()
        with self.locked():
            batch.move_to(name)

    def settle(self) -> None:
        """Take out files that a later one replaces (a log that has grown); safe to repeat."""
        with self.locked():
            known = self.known_files()
            gone = {file.replaces for file in known if file.replaces}
            stale = [file for file in known if file.file_id in gone]
            for batch in sorted({file.batch for file in stale}):
                members = {file.file_id for file in known if file.batch == batch}
                self._rewrite(batch, members, members & gone)

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """Lend a directory nobody reads, on the store's disk; it is removed in the end."""
        directory = _workplace(self.path)
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _rewrite(self, batch: str, members: set[str], gone: set[str]) -> None:
        left = members - gone
        if left:
            with self.workplace() as copy:
                shutil.copytree(self.path / batch, copy, dirs_exist_ok=True)
                drop_rows(copy, gone)
                target = self.path / batch_name(left)
                if not target.exists():
                    copy.rename(target)
        trash = _workplace(self.path)
        (self.path / batch).rename(trash / batch)
        shutil.rmtree(trash)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store while names change; released by the system if the process dies."""
        with (self.path / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _remove_abandoned(self) -> None:
        """Remove what killed writers of this machine left."""
        for entry in (self.path / _INCOMING).glob("*"):
            _, _, owner = entry.name.rpartition("@")
            host, _, pid = owner.rpartition(":")
            if host == socket.gethostname() and not _alive(int(pid)):
                shutil.rmtree(entry, ignore_errors=True)


class BatchWriter:
    """Writes the parts of one batch into a directory nobody reads yet."""

    def __init__(self, store: Store) -> None:
        self.directory = _workplace(store.path)
        self._store = store
        self._writers: dict[str, pq.ParquetWriter] = {}

    def write(self, table: str, rows: pa.Table) -> None:
        """Append rows to the part of `table`, sorted as the table says, as one row group."""
        part = _sorted(table, _coded(table, rows))
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
        writer.write_table(part, row_group_size=1 << 20)

    def close(self) -> None:
        """Finish the parts."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def move_to(self, name: str) -> None:
        """Rename the directory to its final name; if that batch is there, this one goes."""
        self.close()
        target = self._store.path / name
        if target.exists():
            self.discard()
        else:
            self.directory.rename(target)

    def discard(self) -> None:
        """Remove what was written."""
        for writer in self._writers.values():
            # A full disk refuses the footer too; what was written goes all the same.
            with suppress(OSError):
                writer.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def _workplace(store: Path) -> Path:
    """Make a directory that names its owner, for what no reader may see yet or any more."""
    name = f"{uuid4().hex}@{socket.gethostname()}:{os.getpid()}"
    directory = store / _INCOMING / name
    directory.mkdir(parents=True)
    return directory


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


def drop_rows(directory: Path, file_ids: set[str]) -> None:
    """Rewrite the parts of a directory without the rows of some files."""
    doomed = pa.array(sorted(file_ids), pa.string())
    for part in sorted(directory.glob("*.parquet")):
        rows = pq.read_table(part)
        if "file_id" not in rows.column_names:
            continue
        kept = rows.filter(pc.invert(pc.is_in(rows["file_id"], value_set=doomed)))
        if kept.num_rows:
            pq.write_table(kept, part, compression="zstd")
        else:
            part.unlink()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
