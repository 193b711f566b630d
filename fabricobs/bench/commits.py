"""What a commit takes while a store grows: CPU milliseconds, by the batches it holds already."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from fabricobs.store.arrow import table_schema
from fabricobs.store.parts import BatchWriter, Store

BATCHES = (100, 1_000, 10_000)
_FILES = 5
_MEASURED = 50  # last commits before each size


def commit_times(sizes: tuple[int, ...] = BATCHES) -> Iterator[tuple[int, float, float]]:
    """Yield sizes, the CPU ms of a commit there, and the CPU ms to read what the store holds."""
    with tempfile.TemporaryDirectory(prefix="fabricobs-commits-") as folder:
        store = Store(Path(folder) / "store")
        store.create()
        begun = 0.0
        for number in range(1, max(sizes) + 1):
            if number + _MEASURED - 1 in sizes:
                begun = time.process_time()
            _commit(store, number)
            if number in sizes:
                took = time.process_time() - begun
                begun = time.process_time()
                Store(store.path).snapshot()
                opened = time.process_time() - begun
                yield number, 1000 * took / _MEASURED, 1000 * opened


def _commit(store: Store, number: int) -> None:
    ids = [f"{number:016d}{file:08d}" for file in range(_FILES)]
    rows = [
        {
            "file_id": each,
            "path": f"/logs/{each}.log",
            "size_bytes": 1,
            "content": each,
            "settings": "",
            "formats": "nccl_debug",
            "lines": 1,
        }
        for each in ids
    ]
    with BatchWriter(store) as writer:
        writer.write("files", pa.Table.from_pylist(rows, table_schema("files")))
        store.commit(writer, ids)


def table() -> str:
    """Measure, and return a line a size."""
    lines = [f"{'batches':>8}{'commit CPU ms':>15}{'open CPU ms':>13}"]
    lines += [f"{n:>8,}{commit:>15.1f}{opened:>13.0f}" for n, commit, opened in commit_times()]
    return "\n".join(lines)
