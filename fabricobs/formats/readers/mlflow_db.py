"""MLflow's SQLite store: the metrics of all its runs, each run a job of its own.

The file may come from anybody. It is opened as one that nobody changes, so that nothing is written
beside it and a lock of a running server does not matter; only its plain tables are read, and no
expression of its schema may build long texts.
"""

import math
import sqlite3
from contextlib import closing

from fabricobs.formats import budget
from fabricobs.formats.decompression import SourceError, is_plain
from fabricobs.formats.limits import LIMITS
from fabricobs.formats.readers.scalars import Scalars
from fabricobs.formats.whole import WholeFile, number, whole, whole_cell

_SCHEMA = (
    "SELECT name, type, coalesce(sql, '') FROM sqlite_master WHERE name IN ('metrics', 'runs')"
)
_METRICS = """
SELECT m.key, m.value, m.timestamp, m.step, m.is_nan, coalesce(r.name, m.run_uuid)
FROM metrics m LEFT JOIN runs r ON r.run_uuid = m.run_uuid
ORDER BY m.run_uuid, m.step, m.timestamp, m.key
"""
# Instructions of SQLite's machine between two looks at the clock.
_STEPS_A_LOOK = 100_000
_CACHE_KIB = 16 << 10
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}


def read_mlflow_db(file: WholeFile) -> None:
    """Read one store; a metric without a column is known and ignored."""
    scalars = Scalars(file)
    line = 0
    try:
        with closing(_opened(file)) as database:
            _refuse_views(database)
            for line, (key, value, millis, step, is_nan, run) in enumerate(
                database.execute(_METRICS), 1
            ):
                if line > LIMITS.database_rows:
                    raise SourceError(f"more than {LIMITS.database_rows:,} metrics")
                scalars.job = str(run)
                metric = math.nan if is_nan else number(value)
                moment = whole(millis)
                if metric is None or not isinstance(key, str):
                    file.miss(line, "no number", str(value))
                    continue
                ts = None if moment is None else moment * 1000
                if scalars.add(line, key, metric, whole_cell(step) or 0, ts):
                    file.tally.read()
                else:
                    file.tally.skip()
    except (sqlite3.Error, OverflowError, MemoryError) as error:
        budget.check()
        file.miss(line + 1, str(error), "")
        raise SourceError(f"SQLite: {error}") from error
    finally:
        scalars.finish()


def _opened(file: WholeFile) -> sqlite3.Connection:
    """Open the store where it lies, or in memory if it is compressed; nothing can be written."""
    if is_plain(file.stream):
        database = sqlite3.connect(f"{file.path.as_uri()}?mode=ro&immutable=1", uri=True)
    else:
        data = bytearray(file.read_all())
        # A store in write-ahead mode cannot be opened in memory; the log beside it is not read.
        data[18:20] = b"\x01\x01"
        database = sqlite3.connect(":memory:")
        database.deserialize(bytes(data))
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA query_only = ON")
    database.execute("PRAGMA cell_size_check = ON")
    database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LIMITS.cell_bytes)
    database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    database.set_progress_handler(budget.is_exhausted, _STEPS_A_LOOK)
    database.set_authorizer(_allow)
    return database


def _allow(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Allow reading; of functions the one the question uses."""
    allowed = action in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and second == "coalesce")
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _refuse_views(database: sqlite3.Connection) -> None:
    for name, kind, statement in database.execute(_SCHEMA):
        if kind != "table" or "VIRTUAL" in statement.upper().split("(")[0]:
            raise SourceError(f"SQLite: {name} is no plain table: refused")
