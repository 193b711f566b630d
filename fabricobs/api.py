"""A store in Python: ask it, judge it, draw it. `fabricobs.open` gives one.

Everything reads: nothing here writes to the store. Each call opens a session of its own, so what
another process has ingested meanwhile is seen.
"""

import difflib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricobs.ask import find_question, questions
from fabricobs.config.load import load
from fabricobs.config.schema import Config
from fabricobs.exceptions import UserError
from fabricobs.store.compaction import reading
from fabricobs.store.inspection import refuse_links
from fabricobs.store.sandbox import QueryError, check_read_only
from fabricobs.store.session import (
    columns_by_name,
    is_store,
    open_session,
    runs_of,
)

if TYPE_CHECKING:
    import altair as alt
    import duckdb

    from fabricobs.diagnosis.comparison import Comparison
    from fabricobs.diagnosis.findings import Diagnosis, Finding
    from fabricobs.store.jobs import Run

_WIDTH = 720

# The questions that can be drawn, each by a chart of `report.charts`.
CHARTS = {
    "collective_wait": "collective_times",
    "pause_sources": "pause_tree",
    "slowest_ranks": "rank_compute",
    "steps_that_stand_out": "step_timeline",
    "topology": "topology",
    "uplink_balance": "uplink_shares",
}


class ChartError(UserError):
    """A chart that is not there, or has no data in this store."""


@dataclass(frozen=True, slots=True)
class OpenStore:
    """A store to ask, as its configuration says: own content, thresholds, link rates.

    Answers of `sql` and `query` are relations of DuckDB: `.pl()` gives a polars frame, `.df()`
    pandas, `.to_arrow_table()` Arrow, `.fetchall()` tuples, `.show()` prints. A mistake of the
    caller raises `fabricobs.UserError` whose text says what to do.
    """

    config: Config
    files: tuple[Path, ...] = ()

    @property
    def path(self) -> Path:
        """Return the directory of the store."""
        return self.config.store

    @property
    def content(self) -> tuple[Path, ...]:
        """Return the folders of the user's own content."""
        return self.config.content

    def sql(
        self, statement: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None
    ) -> "duckdb.DuckDBPyRelation":
        """Return the rows of a statement of DuckDB's SQL over every table and view.

        `parameters` fill `$name` or `?`. UserError for a statement that writes or does not bind.
        It reads the store and `allow_files`, no other file; a relation cannot write one either:
        `.pl().write_parquet(FILE)` does.
        """
        import duckdb

        connection = open_session(
            self.path, statement, self.content, site=self.config.site, files=self.files
        )
        check_read_only(connection, statement)
        try:
            return connection.sql(statement, params=parameters)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error

    def query(self, name: str) -> "duckdb.DuckDBPyRelation":
        """Return the rows of a question of `queries/`; UserError names the nearest."""
        return self.sql(find_question(name, self.content).sql)

    def queries(self) -> dict[str, str]:
        """Return the questions by name."""
        return {name: found.question for name, found in questions(self.content).items()}

    def tables(self) -> dict[str, list[str]]:
        """Return the columns of every table and view by its name."""
        with reading(self.path), open_session(self.path, extra=self.content) as connection:
            found = columns_by_name(connection)
        return {name: [column for column, _ in columns] for name, columns in found.items()}

    def jobs(self) -> "tuple[Run, ...]":
        """Return the jobs the store holds, run by run: hosts, ranks, times, steps, files."""
        with reading(self.path):
            return runs_of(self.path)

    def diagnosis(self, job: str | None = None) -> "Diagnosis":
        """Judge the store now: verdict, six answers, findings, segments of one pace, coverage.

        Of several jobs `.jobs` has the verdict of each; with `job` that one is judged alone.
        """
        from fabricobs.judging import judge

        with reading(self.path):
            return judge(self.config, job=job)

    def findings(self) -> "tuple[Finding, ...]":
        """Judge the store now and return its findings, the largest loss first."""
        return self.diagnosis().findings

    def compare(self, a: str, b: str, job: str | None = None) -> "Comparison":
        """Return what changed between two jobs, windows or step ranges.

        Sides are written as for `fabricobs compare`; UserError says what is wrong with one.
        """
        from fabricobs.diagnosis.comparison import compare

        with reading(self.path):
            return compare(a, b, self.path, job, self.content, site=self.config.site)

    def chart(
        self,
        name: str,
        finding: "Finding | None" = None,
        *,
        switch: str | None = None,
        job: str | None = None,
    ) -> "alt.LayerChart":
        """Draw the answer to a question, one of `fabricobs.api.CHARTS`; a notebook shows it.

        A `finding` is marked, and says which switch or job is drawn; else `switch` and `job` do, or
        the switch with the least even uplinks and the job without a name are taken. ChartError
        where no such chart is, or the store has no data for it.
        """
        from fabricobs.diagnosis.findings import Entity, Finding
        from fabricobs.report.charts import catalogue
        from fabricobs.report.charts.source import Source
        from fabricobs.report.charts.theme import on_its_own
        from fabricobs.report.charts.timeline import step_timeline
        from fabricobs.report.charts.topology import draw_topology

        if name not in CHARTS:
            close = difflib.get_close_matches(name, CHARTS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(CHARTS)}"
            raise ChartError(f"no chart {name!r}: {hint}")
        subject = finding or Finding(
            kind=name,
            entities=(Entity("switch", switch=switch, job=job),),
            severity="info",
            confidence=0.0,
            title="",
            explanation="",
        )
        with (
            reading(self.path),
            open_session(self.path, extra=self.content, site=self.config.site) as connection,
        ):
            source = Source(connection, self.content)
            marked = [] if finding is None else [finding]
            drawn: alt.LayerChart | None
            if CHARTS[name] == "step_timeline":
                drawn = step_timeline(source, [], marked)
            elif CHARTS[name] == "topology":
                fabric = draw_topology(source, marked)
                drawn = None if fabric is None else fabric.chart
            else:
                drawn = catalogue.CHARTS[CHARTS[name]](source, subject)
        if drawn is None:
            raise ChartError(
                f"{name}: the store has no data for this chart; job= or switch= choose"
            )
        return on_its_own(drawn, _WIDTH)


def open_store(
    store: str | Path | None = None,
    content: Sequence[str | Path] = (),
    config: str | Path | None = None,
    allow_files: Sequence[str | Path] = (),
) -> OpenStore:
    """Return the configured store, or that of a directory; UserError if none is there.

    `allow_files` are directories whose files `sql` may read beside the store.
    """
    options = {
        "store": None if store is None else Path(store),
        "content": tuple(map(Path, content)) or None,
    }
    loaded = load(None if config is None else Path(config), options)
    if loaded.warning:
        warnings.warn(loaded.warning, stacklevel=3)
    found = loaded.config
    if not is_store(found.store):
        raise UserError(
            f"{found.store}: no store here; "
            f"make one with `fabricobs ingest LOGS --store {found.store}`"
        )
    refuse_links(found.store)
    return OpenStore(found, tuple(map(Path, allow_files)))
