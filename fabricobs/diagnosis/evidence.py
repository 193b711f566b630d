"""Evidence: the answers of the store, as frames, before anything is judged."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fabricobs import content
from fabricobs.store.jobs import Run
from fabricobs.store.scoping import Scope
from fabricobs.store.session import NO_SITE, Site, open_session

if TYPE_CHECKING:
    import duckdb


class Evidence:
    """Runs the queries of `queries/evidence/` once each, on one session."""

    def __init__(
        self,
        store: Path,
        extra: Sequence[Path] = (),
        since: datetime | None = None,
        site: Site = NO_SITE,
        runs: Sequence[Run] | None = None,
        scope: Scope | None = None,
    ) -> None:
        self._session: duckdb.DuckDBPyConnection = open_session(
            store, extra=extra, keep=True, since=since, site=site, runs=runs, scope=scope
        )
        self._paths = content.files("queries", ".sql", extra)
        self._frames: dict[str, pl.DataFrame] = {}
        self._ahead: dict[str, float] = {}

    def close(self) -> None:
        """Let the session go, with the tables it holds; frames asked for stay."""
        self._session.close()

    def gpu_hours(self, job: str | None, hours: float, loss_share: float | None) -> float | None:
        """Return the GPU hours a loss cost: share, times duration, times the job's ranks."""
        sizes = self.frame("job_sizes").filter(pl.col("job").eq_missing(pl.lit(job)))
        if loss_share is None or sizes.is_empty():
            return None
        return round(loss_share * hours * int(sizes["ranks"][0]), 2)

    def set_clocks(self, seconds_ahead: Mapping[str, float]) -> None:
        """Take back the time of devices whose clocks are ahead, in frames asked for from now on."""
        self._ahead = dict(seconds_ahead)

    def frame(self, name: str) -> pl.DataFrame:
        """Return the rows of one evidence query, times of devices by the job's clock."""
        if name not in self._frames:
            statement = self._paths[f"evidence/{name}"].read_text(encoding="utf-8")
            # A NaN in a log is no number: it must not win every comparison.
            self._frames[name] = self._shifted(self._session.sql(statement).pl().fill_nan(None))
        return self._frames[name]

    def _shifted(self, rows: pl.DataFrame) -> pl.DataFrame:
        if not self._ahead or "device" not in rows.columns:
            return rows
        ahead = pl.col("device").replace_strict(self._ahead, default=0.0, return_dtype=pl.Float64)
        return rows.with_columns(
            pl.col(name) - pl.duration(microseconds=(ahead * 1e6).cast(pl.Int64))
            for name in ("ts_before", "ts")
            if name in rows.columns
        )
