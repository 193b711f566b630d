"""Compaction and pruning of a store while others write and read it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fabricobs.store.log import Batch, Snapshot
from fabricobs.store.parts import (
    BatchWriter,
    Store,
    batch_name,
    copy_rows,
    read_part,
    without,
)
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

    `now` is UTC without a zone.
    """
    limit = (now or _now()) - _SETTLED_AFTER
    store.settle(now)
    merged = 0
    seen = store.snapshot()
    for group in _groups(_small_batches(seen, limit)):
        with BatchWriter(store) as writer:
            for table in sorted({table for batch in group for table in batch.parts}):
                parts = [store.part(batch, table) for batch in group if table in batch.parts]
                writer.write(table, pa.concat_tables(map(read_part, parts)))
            names = [batch.name for batch in group]
            if store.replace(names, writer.put(_name_after(names))):
                merged += len(names) - 1
    return merged


def prune(store: Store, keep: timedelta, now: datetime | None = None) -> Pruned:
    """Take out the rows of files that are older than `keep`, by the newest time of the data.

    The account of a file stays, so that it is not read again; so do all rows of the newest file of
    its formats and device: the last that is known of a cable or a port. The room is free an hour
    later, when no reader needs the rows any more. `now` is UTC, no zone.
    """
    moment = now or _now()
    store.settle(now)
    newest = newest_time(store.path, moment + timedelta(days=1))
    if newest is None:
        return Pruned(0, 0, keep)
    files = freed = 0
    seen = store.snapshot()
    for name, ids in _old_files(store, seen, newest - keep).items():
        batch = seen.batches[name]
        with BatchWriter(store) as writer:
            copy_rows(store, batch, writer, partial(_pruned, ids, moment))
            pruned = writer.put(_name_after([name]))
        if store.replace([name], pruned):
            files += len(ids)
            freed += _size(batch) - _size(pruned)
    return Pruned(files, freed, keep)


def small_batches(store: Store) -> int:
    """Return how many batches `compact` could merge now."""
    return len(_small_batches(store.snapshot(), _now() - _SETTLED_AFTER))


def _name_after(names: Sequence[str]) -> str:
    """Return the name of the batch that replaces some others."""
    return batch_name(["replaces", *names])


def _small_batches(seen: Snapshot, limit: datetime) -> list[Batch]:
    """Return the small batches without a file changed after `limit`."""
    return [
        batch
        for _, batch in sorted(seen.batches.items())
        if _size(batch) < _SMALL_BYTES
        and all(file.modified is None or file.modified <= limit for file in batch.files)
    ]


def _groups(batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    """Group batches to be merged, each group of bounded size."""
    group: list[Batch] = []
    total = 0
    for batch in batches:
        if group and total + _size(batch) > _MERGED_BYTES:
            yield group
            group, total = [], 0
        group.append(batch)
        total += _size(batch)
    if len(group) >= _FEWEST_TO_MERGE:
        yield group


def _old_files(store: Store, seen: Snapshot, limit: datetime) -> dict[str, set[str]]:
    """Return, by batch, the files whose rows may go."""
    columns = ["file_id", "job", "formats", "device", "modified", "ts_last"]
    rows: list[dict[str, Any]] = []
    for name, batch in seen.batches.items():
        if "files" not in batch.parts:
            continue
        files = read_part(store.part(batch, "files"))
        kept = files.filter(pc.is_null(files["pruned"])).select(columns)
        rows.extend({**row, "batch": name} for row in kept.to_pylist())
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


def _size(batch: Batch) -> int:
    return sum(part.size_bytes for part in batch.parts.values())


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
