"""MLflow's SQLite store: the metrics of all its runs, each run a job of its own.

The file is read into memory and opened there: nothing is written beside it, and a lock of a
running server does not matter.
"""

import math
import sqlite3
from contextlib import closing

from fabricobs.formats.readers.scalars import Scalars
from fabricobs.formats.source import SourceError
from fabricobs.formats.whole import WholeFile, number, whole

_METRICS = """
SELECT m.key, m.value, m.timestamp, m.step, m.is_nan, coalesce(r.name, m.run_uuid)
FROM metrics m LEFT JOIN runs r ON r.run_uuid = m.run_uuid
ORDER BY m.run_uuid, m.step, m.timestamp, m.key
"""
# Instructions of SQLite's machine between two looks at the clock; a sound store needs far fewer.
_MOST_STEPS = 2_000_000_000


def read_mlflow_db(file: WholeFile) -> None:
    """Read one store; a metric without a column is known and ignored."""
    data = bytearray(file.read_all())
    # A store in write-ahead mode cannot be opened in memory; the log beside it is not read.
    data[18:20] = b"\x01\x01"
    scalars = Scalars(file)
    line = 0
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(bytes(data))
            database.text_factory = lambda text: text.decode("utf-8", "replace")
            database.set_progress_handler(lambda: 1, _MOST_STEPS)
            for line, (key, value, millis, step, is_nan, run) in enumerate(
                database.execute(_METRICS), 1
            ):
                scalars.job = str(run)
                metric = math.nan if is_nan else number(value)
                moment = whole(millis)
                if metric is None or not isinstance(key, str):
                    file.tally.miss(line, f"{file.format.name}: no number", str(value))
                    continue
                ts = None if moment is None else moment * 1000
                if scalars.add(line, key, metric, whole(step) or 0, ts):
                    file.tally.read()
                else:
                    file.tally.skip()
    except (sqlite3.Error, OverflowError) as error:
        file.tally.miss(line + 1, f"{file.format.name}: {error}", "")
        raise SourceError(f"SQLite: {error}") from error
    finally:
        scalars.finish()
