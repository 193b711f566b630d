"""The memory limit of DuckDB in a diagnosis, and the message where it does not suffice."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fabricobs.exceptions import UserError
from fabricobs.resources import cores
from fabricobs.store.inspection import one_line

if TYPE_CHECKING:
    import duckdb

# Beyond its memory DuckDB uses the disk, but what it holds at once grows with the store: 195 MB of
# Parquet (4,096 GPUs, 500 steps) fail with 450 and do with 700, 50 MB do with 300, and
# with 500 use no disk.
# A diagnosis takes twice as much again for Python and its frames.
_LEAST_USUAL_MB = 500
_MB_A_STORED_MB = 4
LEAST_MEMORY_MB = 100
# Texts as polars holds them: frames whose texts are copied take half as much memory again.
_SHORT_TEXTS: dict[str, str | int] = {
    "arrow_output_version": "1.4",
    "produce_arrow_string_view": "true",
}
# Each thread holds blocks and hash tables of its own: with less it waits for the disk.
_LEAST_MB_A_THREAD = 75


class MemoryLimitError(UserError):
    """A store that needs more memory than DuckDB may take; the text says the limit."""


def usual_memory_mb(stored_bytes: int) -> int:
    """Return what DuckDB may take where no configuration says it, for so many bytes of Parquet."""
    return max(_LEAST_USUAL_MB, _MB_A_STORED_MB * stored_bytes // 1_000_000)


def limits(memory_mb: int) -> dict[str, str | int]:
    """Return the settings of a DuckDB that takes so much memory before it uses the disk."""
    threads = min(cores(), max(1, memory_mb // _LEAST_MB_A_THREAD))
    return {"memory_limit": f"{memory_mb}MiB", "threads": threads, **_SHORT_TEXTS}


@contextmanager
def within_memory(connection: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    """Raise MemoryLimitError where DuckDB reaches its limit and cannot use the disk instead."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        ((limit, spill),) = connection.execute(
            "SELECT current_setting('memory_limit'), current_setting('temp_directory')"
        ).fetchall()
        raise MemoryLimitError(
            f"DuckDB needs more memory than its limit of {limit}, or more space in "
            f"{Path(spill).parent.parent}: set memory_mb in the configuration "
            f"($FABRICOBS_MEMORY_MB) to more, or judge a shorter --window. DuckDB: "
            f"{one_line(error)}"
        ) from error
