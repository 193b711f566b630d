"""Upkeep of a store beside its writers and readers: small batches merged, old rows taken out."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fabricobs.store.compaction import alone
from fabricobs.store.manifest import PART
from fabricobs.store.parts import BatchWriter, Store, batch_name, copy_rows, read_part, without
from fabricobs.store.session import newest_time

_SMALL_BYTES = 4 << 20
_MERGED_BYTES = 16 << 20
_FEWEST_TO_MERGE = 4
# A file changed so lately may grow again; merged with others, all of them would be written anew.
_SETTLED_AFTER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a retention took out: files whose rows are gone, and the bytes that made room."""

    files: int
    freed_bytes: int
    keep: timedelta


def compact(store: Store, now: datetime | None = None) -> int:
    """Merge small batches whose files have come to rest; return how many batches went.

    `now` is UTC without a zone. BusyError if readers hold the store for longer than a minute.
    """
    limit = (now or _now()) - _SETTLED_AFTER
    store.settle()
    merged = 0
    for group in _groups(_small_batches(store, limit)):
        with alone(store.path), store.locked():
            names = [name for name in group if (store.path / name).is_dir()]
            if len(names) > 1:
                with BatchWriter(store, replaces=names) as writer:
                    for table, parts in _parts_by_table(store, names).items():
                        writer.write(table, pa.concat_tables(map(read_part, parts)))
                    store.replace(writer, _name_after(names))
                merged += len(names) - 1
    return merged


def prune(store: Store, keep: timedelta, now: datetime | None = None) -> Pruned:
    """Take out the rows of files that are older than `keep`, by the newest time of the data.

    The account of a file stays, so that it is not read again; so do all rows of the newest file of
    its formats and device: the last that is known of a cable or a port. `now` is UTC, no zone.
    """
    moment = now or _now()
    store.settle()
    newest = newest_time(store.path, moment + timedelta(days=1))
    if newest is None:
        return Pruned(0, 0, keep)
    old = _old_files(store, newest - keep)
    files = freed = 0
    for batch, ids in old.items():
        with alone(store.path), store.locked():
            if not (store.path / batch).is_dir():
                continue
            before = _size(store.path / batch)
            name = _name_after([batch])
            with BatchWriter(store, replaces=[batch]) as writer:
                copy_rows(store.path / batch, writer, partial(_pruned, ids, moment))
                store.replace(writer, name)
            files += len(ids)
            freed += before - _size(store.path / name)
    return Pruned(files, freed, keep)


def small_batches(store: Store) -> int:
    """Return how many batches `compact` could merge now."""
    return len(_small_batches(store, _now() - _SETTLED_AFTER))


def _name_after(names: Sequence[str]) -> str:
    """Return the name of the batch that replaces some others."""
    return batch_name(["replaces", *names])


def _small_batches(store: Store, limit: datetime) -> list[tuple[str, int]]:
    """Return name and bytes of the small batches without a file changed after `limit`."""
    changed: dict[str, datetime] = {}
    for file in store.known_files():
        changed[file.batch] = max(changed.get(file.batch, file.modified), file.modified)
    rows = [name for name in store.batches() if not name.startswith("schema")]
    sizes = [(name, _size(store.path / name)) for name in rows]
    return [
        (name, size)
        for name, size in sizes
        if size < _SMALL_BYTES and (name not in changed or changed[name] <= limit)
    ]


def _groups(batches: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Group batches to be merged, each group of bounded size."""
    group: list[str] = []
    total = 0
    for name, size in batches:
        if group and total + size > _MERGED_BYTES:
            yield group
            group, total = [], 0
        group.append(name)
        total += size
    if len(group) >= _FEWEST_TO_MERGE:
        yield group


def _parts_by_table(store: Store, names: Sequence[str]) -> dict[str, list[Path]]:
    parts: dict[str, list[Path]] = {}
    for name in names:
        for part in sorted((store.path / name).glob(f"*{PART}")):
            parts.setdefault(part.stem, []).append(part)
    return parts


def _old_files(store: Store, limit: datetime) -> dict[str, set[str]]:
    """Return, by batch, the files whose rows may go."""
    columns = ["file_id", "job", "formats", "device", "modified", "ts_last"]
    rows: list[dict[str, Any]] = []
    for batch in store.batches():
        try:
            files = read_part(store.path / batch / "files.parquet")
        except FileNotFoundError:
            continue  # it has none, or a writer beside this one replaced it meanwhile
        kept = files.filter(pc.is_null(files["pruned"])).select(columns)
        rows.extend({**row, "batch": batch} for row in kept.to_pylist())
    last: dict[tuple[Any, ...], datetime] = {}
    for row in rows:
        row["time"] = max(filter(None, (row["modified"], row["ts_last"])))
        kind = (row["job"], row["formats"], row["device"])
        last[kind] = max(last.get(kind, row["time"]), row["time"])
    old: dict[str, set[str]] = {}
    for row in rows:
        newest = last[(row["job"], row["formats"], row["device"])]
        if row["time"] < min(limit, newest):
            old.setdefault(row["batch"], set()).add(row["file_id"])
    return old


def _pruned(ids: set[str], now: datetime, table: str, rows: pa.Table) -> pa.Table:
    """Return the rows of a table except those of some files; their accounts stay, marked."""
    if table != "files":
        return without(ids, table, rows)
    gone = pc.is_in(rows["file_id"], value_set=pa.array(sorted(ids), pa.string()))
    marks = pc.if_else(gone, pa.scalar(now, pa.timestamp("us")), rows["pruned"])
    return rows.set_column(rows.column_names.index("pruned"), "pruned", marks)


def _size(folder: Path) -> int:
    """Return the bytes of a batch; 0 if a writer beside this one replaced it meanwhile."""
    with suppress(FileNotFoundError):
        return sum(part.stat().st_size for part in folder.iterdir())
    return 0


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
