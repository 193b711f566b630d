"""Records of a Parquet file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fabricobs.formats import budget
from fabricobs.formats.decompression import SourceError
from fabricobs.formats.limits import LIMITS, in_mib
from fabricobs.formats.records.arrow_cells import ArrowCells
from fabricobs.formats.records.columns import Cells
from fabricobs.formats.records.sink import RecordSink

_ROWS = 100_000
_END = 8  # the footer's length and the magic


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a Parquet file; SourceError if it is broken, or its footer alone is too much."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - _END, 0))
        footer = int.from_bytes(file.read(4), "little")
    if footer > LIMITS.footer_bytes:
        raise SourceError(f"broken Parquet: a footer longer than {in_mib(LIMITS.footer_bytes)}")
    try:
        opened = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"broken Parquet: {error}") from error
    if opened.metadata.num_columns > LIMITS.columns:
        raise SourceError(f"more than {LIMITS.columns:,} columns")
    return opened


def read_parquet(path: Path, sink: RecordSink, flush: Callable[[], None]) -> None:
    """Read a Parquet file in batches, handing over what is full; a row counts as a line."""
    file = open_parquet(path)
    names = file.schema_arrow.names
    wanted = list(sink.record_format.sources_of(names))
    sink.dropped = tuple(name for name in names if name not in wanted)
    _refuse_large_groups(file.metadata, set(wanted))
    number = 1
    for batch in file.iter_batches(batch_size=_ROWS, columns=wanted):
        budget.check()
        cells: dict[str, Cells] = {
            name: ArrowCells(batch.column(position))
            for position, name in enumerate(batch.schema.names)
        }
        numbers = np.arange(number, number + batch.num_rows)
        sink.add(0, cells, numbers, lambda row: "")
        number += batch.num_rows
        if sink.rows.is_full:
            flush()


def _refuse_large_groups(metadata: pq.FileMetaData, wanted: set[str]) -> None:
    """Raise SourceError if a row group unpacks to more than is held at a time."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunks = map(group.column, range(group.num_columns))
        size = sum(c.total_uncompressed_size for c in chunks if c.path_in_schema in wanted)
        if size > LIMITS.row_group_bytes:
            raise SourceError(f"a row group longer than {in_mib(LIMITS.row_group_bytes)}")
