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
_PART = 0.1  # of the batches, the last before each size: a checkpoint falls into it


def commit_times(sizes: tuple[int, ...] = BATCHES) -> Iterator[tuple[int, float]]:
    """Yield sizes and the CPU ms of a commit there."""
    with tempfile.TemporaryDirectory(prefix="fabricobs-commits-") as folder:
        store = Store(Path(folder) / "store")
        store.create()
        begun = 0.0
        begins = {size - int(_PART * size) + 1 for size in sizes}
        for number in range(1, max(sizes) + 1):
            if number in begins:
                begun = time.process_time()
            _commit(store, number)
            if number in sizes:
                yield number, 1000 * (time.process_time() - begun) / int(_PART * number)


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
    lines = [f"{'batches':>8}{'commit CPU ms':>15}"]
    lines += [f"{number:>8,}{took:>15.1f}" for number, took in commit_times()]
    return "\n".join(lines)
