"""Validation of a store: plain files in plain directories, columns of the declared types.

A store may come from anywhere. What leads out of it is refused, what is odd is named.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fabricobs.exceptions import UserError
from fabricobs.store.sandbox import escaped
from fabricobs.store.tables import TABLES

if TYPE_CHECKING:
    import duckdb


class PartError(UserError):
    """A part of a store that cannot be read; the text names it."""


def refuse_links(store: Path) -> None:
    """Raise PartError if a batch or part is a symbolic link or no plain file.

    A link could lead anywhere; reading a pipe would wait for ever. Nor does DuckDB find files below
    a path with a backslash, which it takes for a separator.
    """
    if "\\" in str(store.resolve()):
        raise PartError(f"{str(store)!r}: a path with a backslash cannot be read; move the store")
    with os.scandir(store) as entries:
        for entry in entries:
            _refuse_link(entry)
            if entry.is_dir(follow_symlinks=False):
                # A writer beside this one may have replaced the batch meanwhile.
                with suppress(FileNotFoundError), os.scandir(entry) as parts:
                    for part in parts:
                        _refuse_link(part)


def _refuse_link(entry: os.DirEntry[str]) -> None:
    if entry.is_symlink():
        raise PartError(f"{entry.path!r} is a symbolic link: a store holds plain files; remove it")
    if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
        raise PartError(f"{entry.path!r} is no plain file: a store holds plain files; remove it")


def odd_columns(table: str, found: dict[str, str]) -> Iterator[str]:
    """Yield what is wrong with the columns of a table, given their types by name."""
    for column in TABLES[table].columns:
        kind = found.get(column.name, column.type)
        if kind != column.type:
            yield f"column {column.name} is {kind}, not {column.type}"


def odd_part(
    connection: "duckdb.DuckDBPyConnection", table: str, parts: Iterable[Path]
) -> str | None:
    """Name the first part of a table that cannot be read or has odd columns; None if none has."""
    import duckdb

    for part in parts:
        try:
            rows = connection.execute(
                "DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning=false)",
                [escaped(str(part))],
            ).fetchall()
        except duckdb.Error as error:
            if part.exists():  # a writer beside this one may have replaced it meanwhile
                return f"{str(part)!r} cannot be read: {one_line(error)}"
            continue
        for odd in odd_columns(table, {row[0]: row[1] for row in rows}):
            return f"{str(part)!r}: {odd}; no version of fabricobs wrote this part"
    return None


def of_a_part(error: BaseException) -> bool:
    """Say whether an error comes from one of DuckDB that may be over a part of a store.

    DuckDB names the part, or fails without a class and a name where it holds nonsense.
    """
    cause: BaseException | None = error
    while cause is not None and not type(cause).__module__.endswith("duckdb"):
        cause = cause.__cause__
    return cause is not None and (".parquet" in str(cause) or type(cause).__name__ == "Error")


def unreadable(part: Path) -> str | None:
    """Return why a part cannot be read to its end, None if it can."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(part) as file:
            for group in range(file.num_row_groups):
                file.read_row_group(group)
    except (pa.ArrowException, OSError) as error:
        return one_line(error)
    return None


def one_line(error: BaseException) -> str:
    """Return a message of DuckDB without its copy of the statement, in one line."""
    told = str(error).partition("\n\nLINE ")[0].partition("\nLINE ")[0]
    return " ".join(told.split())
