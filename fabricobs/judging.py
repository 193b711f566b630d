"""Diagnose the configured store. The caller holds the store (`store.reading.reading`)."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from fabricobs.config.schema import Config
from fabricobs.diagnosis.findings import Diagnosis
from fabricobs.diagnosis.run import diagnose
from fabricobs.store.session import newest_time

if TYPE_CHECKING:
    import duckdb


def judge(
    config: Config,
    since: datetime | None = None,
    job: str | None = None,
    session: "duckdb.DuckDBPyConnection | None" = None,
) -> Diagnosis:
    """Judge the configured store from `since` (UTC) on, with the site's thresholds and rates.

    With `job` only that job; JobError if the store holds none of that name. `session` is an open
    session of the same content, which the caller uses to draw the diagnosis too.
    """
    found = diagnose(
        config.store,
        config.content,
        since=since,
        site=config.site,
        thresholds=config.thresholds,
        gpu_hour_price=config.gpu_hour_price,
        currency=config.currency,
        job=job,
        memory_mb=config.memory_mb,
        session=session,
    )
    return replace(found, cluster=config.cluster)


def window_start(store: Path, length: timedelta | None) -> datetime | None:
    """Return where a window before the newest data of a store begins; None for all there is."""
    if length is None:
        return None
    newest = newest_time(store, datetime.max)
    return None if newest is None else newest - length
