"""Evidence: the answers of the store, as frames, before anything is judged."""

import re
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import polars as pl

from fabricobs import content
from fabricobs.content import ContentError
from fabricobs.store.jobs import Run
from fabricobs.store.memory import within_memory
from fabricobs.store.sandbox import check_read_only
from fabricobs.store.scoping import Scope
from fabricobs.store.session import NO_SITE, Site, open_session

if TYPE_CHECKING:
    import duckdb


Limits = Mapping[str, float | datetime]
# Whose rows they are (`Evidence.with_rows` has others), the query, and the limits it reads.
_Key = tuple[object, str, str]
_NO_LIMITS: Limits = MappingProxyType({})
_PARAMETER = re.compile(r"\$([A-Za-z]\w*)")
_OTHERS = re.compile(r"\bevidence\.(\w+)")
_ANSWER = 'evidence."the answer"'  # which no query is called


class Evidence:
    """Runs the queries of `queries/evidence/` once each, on one session.

    A query may read thresholds and times as `$NAME`, and the rows of other queries as
    `evidence.NAME`: these have times by the job's clock, so that one which reads them reads no
    times from elsewhere.
    """

    def __init__(
        self,
        store: Path,
        extra: Sequence[Path] = (),
        since: datetime | None = None,
        site: Site = NO_SITE,
        runs: Sequence[Run] | None = None,
        scope: Scope | None = None,
        session: "duckdb.DuckDBPyConnection | None" = None,
        memory_mb: int | None = None,
    ) -> None:
        self.since = since
        self._is_own = session is None
        self._session: duckdb.DuckDBPyConnection = session or open_session(
            store,
            extra=extra,
            keep=True,
            since=since,
            site=site,
            runs=runs,
            scope=scope,
            memory_mb=memory_mb,
        )
        self._session.execute("CREATE SCHEMA evidence")
        self._paths = content.files("queries", ".sql", extra)
        self._frames: dict[_Key, pl.DataFrame] = {}
        self._given: dict[str, pl.DataFrame] = {}
        self._shown: dict[str, _Key | pl.DataFrame] = {}
        self._mark = object()
        self._ahead: dict[str, float] = {}

    def close(self) -> None:
        """Let the session go, with the tables it holds; frames asked for stay."""
        if self._is_own:
            self._session.close()

    def ranks_of(self, job: str | None) -> int | None:
        """Return how many ranks of a job are seen, None where nothing tells."""
        sizes = self.frame("job_sizes").filter(pl.col("job").eq_missing(pl.lit(job)))
        return None if sizes.is_empty() else int(sizes["ranks"][0])

    def set_clocks(self, seconds_ahead: Mapping[str, float]) -> None:
        """Take back the time of devices whose clocks are ahead, in frames asked for from now on."""
        self._ahead = dict(seconds_ahead)

    def frame(self, name: str, limits: Limits = _NO_LIMITS) -> pl.DataFrame:
        """Return the rows of one evidence query, times of devices by the job's clock."""
        if name in self._given:
            return self._given[name]
        key = self._key(name, limits)
        if key not in self._frames:
            held = self._shown.get(name) == key
            self._frames[key] = self._rows_shown(name) if held else self._rows_of(name, limits)
        return self._frames[key]

    def _key(self, name: str, limits: Limits) -> _Key:
        """Return what tells the rows of a query from those of other limits, or given ones."""
        return self._mark, name, str(_asked(self._text_of_all(name), limits))

    def _rows_of(self, name: str, limits: Limits) -> pl.DataFrame:
        statement = self._prepared(name, limits)
        rows = self._answer(statement, _asked(statement, limits))
        # What is read of other evidence is by the job's clock already.
        derived = _OTHERS.search(statement) is not None
        return rows if derived else self._shifted(rows)

    def _rows_shown(self, name: str) -> pl.DataFrame:
        rows: pl.DataFrame = self._session.table(f"evidence.{name}").pl()
        return rows

    def ask_of(self, rows: pl.DataFrame, sql: str, limits: Limits = _NO_LIMITS) -> pl.DataFrame:
        """Return the answer to SQL over `evidence.rows`, which are these; QueryError if it writes.

        Thresholds are read as `$NAME`.
        """
        check_read_only(self._session, sql)
        if self._shown.get("rows") is not rows:
            self._make("rows", rows)
            self._shown["rows"] = rows
        self._show_others(sql, limits)
        return self._answer(sql, _asked(sql, limits))

    def with_rows(self, tables: Mapping[str, pl.DataFrame], limits: Limits) -> "Evidence":
        """Return this evidence with the rows of some queries replaced by others, all of text.

        ContentError if a query has no such column, an error of DuckDB if a value does not fit one.
        """
        other = copy(self)
        other._frames, other._given, other._mark = {}, {}, object()
        for name, rows in tables.items():
            statement = self._prepared(name, limits)
            like = self._session.sql(statement, params=_asked(statement, limits) or None)
            types = dict(zip(like.columns, map(str, like.types), strict=True))
            other._given[name] = self._typed(rows, types, name)
        return other

    def _typed(self, rows: pl.DataFrame, types: Mapping[str, str], name: str) -> pl.DataFrame:
        unknown = ", ".join(column for column in rows.columns if column not in types)
        if unknown:
            raise ContentError(
                f"evidence {name} has no column {unknown}; it has {', '.join(types)}"
            )
        columns = ", ".join(
            (f'"{column}"' if column in rows.columns else "NULL") + f'::{type_} AS "{column}"'
            for column, type_ in types.items()
        )
        return self.ask_of(rows, f"SELECT {columns} FROM evidence.rows")

    def _answer(self, sql: str, asked: Limits) -> pl.DataFrame:
        # A relation of the query itself would be planned twice, once for the names of its columns.
        with within_memory(self._session):
            self._session.execute(f"CREATE OR REPLACE TABLE {_ANSWER} AS {sql}", asked or None)
            rows: pl.DataFrame = self._session.table(_ANSWER).pl()
        # A NaN in a log is no number: it must not win every comparison.
        return rows.fill_nan(None)

    def _prepared(self, name: str, limits: Limits) -> str:
        """Return the statement of a query, the other evidence it reads shown to it."""
        statement = self._statement(name)
        self._show_others(statement, limits)
        return statement

    def _show_others(self, sql: str, limits: Limits) -> None:
        """Make `evidence.NAME` of the rows of each query that the SQL reads, unless it is there."""
        for name in dict.fromkeys(_OTHERS.findall(sql)):
            if name == "rows":
                continue
            key = self._key(name, limits)
            if self._shown.get(name) != key:
                self._make(name, self.frame(name, limits))
                self._shown[name] = key
            # They are held once, by DuckDB, which can spill them: most are read by SQL alone.
            self._frames.pop(key, None)

    def _make(self, name: str, rows: pl.DataFrame) -> None:
        """Make `evidence.NAME` of these rows."""
        self._session.register("shown", rows.to_arrow(compat_level=pl.CompatLevel.newest()))
        with within_memory(self._session):
            self._session.execute(f"CREATE OR REPLACE TABLE evidence.{name} AS FROM shown")
        self._session.unregister("shown")

    def _text_of_all(self, name: str) -> str:
        """Return the text of a query and of all evidence it reads: these name its thresholds."""
        statement = self._statement(name)
        return "\n".join([statement, *map(self._text_of_all, {*_OTHERS.findall(statement)})])

    def _statement(self, name: str) -> str:
        if f"evidence/{name}" not in self._paths:
            raise ContentError(f"queries/evidence/{name}.sql: there is no such query")
        return self._paths[f"evidence/{name}"].read_text(encoding="utf-8")

    def _shifted(self, rows: pl.DataFrame) -> pl.DataFrame:
        if not self._ahead or "device" not in rows.columns:
            return rows
        ahead = pl.col("device").replace_strict(self._ahead, default=0.0, return_dtype=pl.Float64)
        return rows.with_columns(
            pl.col(name) - pl.duration(microseconds=(ahead * 1e6).cast(pl.Int64))
            for name in ("ts_before", "ts")
            if name in rows.columns
        )


def _asked(sql: str, limits: Limits) -> dict[str, float | datetime]:
    """Return the thresholds that a statement names."""
    return {name: limits[name] for name in _PARAMETER.findall(sql) if name in limits}
