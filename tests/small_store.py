"""Small stores for tests: step records of some days, each day's log a batch of its own."""

import os
from datetime import UTC, datetime
from pathlib import Path

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.reading import reading
from fabricobs.store.session import open_session
from fabricobs.store.tables import TABLES

STEP = (
    '{{"step": {0}, "rank": 0, "step_time_ms": 10.0, "timestamp": "2026-03-{1:02d}T09:00:00Z"}}\n'
)


def write_days(folder: Path, days: int, store: Path | None = None) -> None:
    """Write a log of one step a day to `folder`; with `store` read each as a batch of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for day in range(1, days + 1):
        log = folder / f"day{day:02d}.jsonl"
        log.write_text(STEP.format(day, day))
        moment = datetime(2026, 3, day, 12, tzinfo=UTC).timestamp()
        os.utime(log, (moment, moment))
        if store is not None:
            ingest([log], Store(store), Options())


def steps(store: Store) -> list[int]:
    """Return the steps that a reader of the store finds."""
    rows = open_session(store.path, "steps").sql("SELECT step FROM steps ORDER BY step").fetchall()
    return [step for (step,) in rows]


def rows_of(store: Path) -> dict[str, list[str]]:
    """Return the rows by table as sorted texts, without what tells when a program ran."""
    marks = {"files": "pruned IS NOT NULL AS pruned", "findings": "NULL AS told, NULL AS run"}
    found = {}
    with reading(store), open_session(store, " ".join(TABLES)) as session:
        for table in TABLES:
            mark = f"* REPLACE ({marks[table]})" if table in marks else "*"
            rows = list(map(repr, session.sql(f"SELECT {mark} FROM {table}").fetchall()))
            # How a format counts is noted with each batch of its files.
            found[table] = sorted(set(rows) if table == "counter_info" else rows)
    return found
