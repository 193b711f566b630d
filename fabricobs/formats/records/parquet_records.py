"""Records of a Parquet file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from fabricobs.formats.records.columns import ArrowCells, Cells
from fabricobs.formats.records.sink import RecordSink

_ROWS = 100_000


def read_parquet(path: Path, sink: RecordSink, flush: Callable[[], None]) -> None:
    """Read a Parquet file in batches, handing over what is full; a row counts as a line."""
    file = pq.ParquetFile(path)
    names = file.schema_arrow.names
    sink.unused.update(sink.record_format.unused(names))
    wanted = list(sink.record_format.sources_of(names))
    number = 1
    for batch in file.iter_batches(batch_size=_ROWS, columns=wanted):
        cells: dict[str, Cells] = {
            name: ArrowCells(batch.column(position))
            for position, name in enumerate(batch.schema.names)
        }
        numbers = np.arange(number, number + batch.num_rows)
        sink.add(0, cells, numbers, lambda row: "")
        number += batch.num_rows
        if sink.rows.is_full:
            flush()
