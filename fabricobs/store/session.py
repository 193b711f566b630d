"""DuckDB over the store: base views on the Parquet, the derived views, read-only statements."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fabricobs import content, stopping
from fabricobs.store import scoping
from fabricobs.store.allocations import allocation_of
from fabricobs.store.counter_sql import make_kept_rates
from fabricobs.store.inspection import PartError, odd_columns, odd_part, one_line, refuse_links
from fabricobs.store.jobs import Run, Trace, find_runs
from fabricobs.store.log import Snapshot
from fabricobs.store.memory import limits, usual_memory_mb, within_memory
from fabricobs.store.reading import snapshot_of
from fabricobs.store.sandbox import (
    ParseError,
    QueryError,
    check_read_only,
    check_script,
    connect,
    escaped,
    literal,
)
from fabricobs.store.storage import storage_of
from fabricobs.store.tables import TABLES
from fabricobs.store.views import (
    kept,
    reached_scripts,
    reached_statements,
    statements_of,
    view_scripts,
)

if TYPE_CHECKING:
    import duckdb

_MOST_LOOKS = 5
_TRACES = "jobs/traces"
_ALLOCATIONS = "jobs/allocations"
# Tables whose rows tell nothing of jobs. Who asks any other is told which job a row is of.
_OF_NO_JOB = {
    "port_samples",
    "priority_samples",
    "links",
    "port_status",
    "settings",
    "counter_info",
    "findings",
    "unparsed",
    "files",
    "host_map",
    "allocations",
}
_SITE_SCRIPT = "views/0_site"
# A table larger than this on disk stays there, to be read by column. So does one whose parts are
# larger than the other: queries read few of its columns, which takes less than to hold all, while
# many small parts cost more to open again and again. Of one run a session holds only its rows.
_MOST_LOADED_BYTES = 256_000_000
_MOST_LOADED_BYTES_A_PART = 2_000_000
# Compressed, which `CHECKPOINT` does, the tables of a session take a tenth of the memory: DuckDB
# need not write them to the disk to make room.
_COMPRESSED = "ATTACH ':memory:' AS held (COMPRESS); USE held"
# Views that a session which asks many questions makes otherwise, with the same rows.
_KEPT_RATES = {"views/2_port_rates": "port", "views/2_priority_rates": "priority"}


@dataclass(frozen=True, slots=True)
class LinkRate:
    """The rate of the ports whose device and port match; `*` and `?` stand for any."""

    device: str
    port: str
    speed_gbps: float


@dataclass(frozen=True, slots=True)
class Site:
    """What a site says of its fabric that no log tells: link rates, the job's 802.1p priorities."""

    link_rates: tuple[LinkRate, ...] = ()
    priorities: tuple[int, ...] = ()


NO_SITE = Site()


def base_view(
    table: str,
    store: Path,
    seen: Snapshot,
    replaced: Mapping[str, set[str]],
    since: datetime | None = None,
) -> str:
    """Return the statement that shows a table of a store as it was when it was looked at.

    Rows of files that later ones have `replaced` (`Snapshot.replaced`) are left out. With `since`
    (UTC) a table of what happened shows no row before it; rows without a time stay.
    """
    window = ""
    if since is not None and TABLES[table].dated:
        window = f"ts >= TIMESTAMP '{since:%Y-%m-%d %H:%M:%S.%f}' OR ts IS NULL"
    of_files = "file_id" in {column.name for column in TABLES[table].columns}
    whole, cut = list[str](), list[str]()
    for key in seen.parts(table):
        (cut if of_files and key.partition("/")[0] in replaced else whole).append(key)
    ids = ", ".join(map(literal, sorted({i for name in replaced.values() for i in name})))
    selects = [
        f"SELECT * FROM read_parquet([{', '.join(_paths(store, keys))}], "
        f"union_by_name=true, hive_partitioning=false){where}"
        for keys, where in ((whole, ""), (cut, f" WHERE file_id NOT IN ({ids})"))
        if keys
    ]
    columns = ", ".join(
        f'NULL::{column.type} AS "{column.name}"' for column in TABLES[table].columns
    )
    shown = " UNION ALL BY NAME ".join([*selects, f"SELECT {columns} WHERE false"])
    if window:
        shown = f"SELECT * FROM ({shown}) WHERE {window}"
    return f"CREATE OR REPLACE VIEW {table} AS {shown};"


def _paths(store: Path, keys: Sequence[str]) -> list[str]:
    return [literal(escaped(str(store / key))) for key in keys]


def init_script(store: Path, extra: Sequence[Path] = ()) -> str:
    """Return what a plain `duckdb -init FILE` needs to run the queries over the store."""
    seen = snapshot_of(store)
    _fetch(store, seen, TABLES)
    replaced = seen.replaced()
    lines = [
        "SET TimeZone = 'UTC';",
        *(base_view(table, store, seen, replaced) for table in TABLES),
        *view_scripts(extra).values(),
    ]
    return "\n".join(lines) + "\n"


def open_session(
    store: Path,
    sql: str | None = None,
    extra: Sequence[Path] = (),
    *,
    keep: bool = False,
    since: datetime | None = None,
    site: Site = NO_SITE,
    files: Sequence[Path] = (),
    runs: Sequence[Run] | None = None,
    scope: scoping.Scope | None = None,
    memory_mb: int | None = None,
) -> "duckdb.DuckDBPyConnection":
    """Open an in-memory DuckDB whose views show the store, from `since` (UTC) on.

    `runs` of its jobs are worked out unless they are given; with `scope` one is shown alone.

    It reaches no file outside the store and the directories `files`. PartError names a part that
    is a link or broken, ContentError a file of own content whose SQL does more than read.

    With `sql` only the views it needs are made: binding all of them costs more than a small
    query does. With `keep` tables and views are worked out once and kept, for a session that asks
    many questions: each would bind all views below it and read the same columns again. DuckDB then
    takes `memory_mb` (unless given, by the size of the store) before it uses the disk;
    MemoryLimitError where that does not suffice.
    """
    place = store.resolve()
    refuse_links(place)
    seen = snapshot_of(place)
    replaced = seen.replaced()
    memory_mb = memory_mb or usual_memory_mb(_stored_bytes(seen))
    connection = connect([place, *files], limits(memory_mb) if keep else None)
    if keep:
        connection.execute(_COMPRESSED)
    stopping.interruptible(connection)
    _check_content(connection, extra)
    texts = view_scripts(extra)
    scripts, tables = _asked(connection, texts, sql, keep=keep)
    if runs is None:
        asked = scoping.SCRIPT in scripts or set(tables) - _OF_NO_JOB
        runs = runs_of(store) if asked else ()
    connection.execute(texts[scoping.SCRIPT])
    alone = None if scope is None else scope.run
    shown = runs if alone is None else alone.of or [alone]
    scoping.fill_jobs(connection, runs, shown)
    if scope is not None:
        scoping.fill_scope(connection, scope)

    _fetch(place, seen, tables)

    def view_of(table: str) -> str:
        shown = base_view(table, place, seen, replaced, since)
        return scoping.of_runs(shown, table, runs or (), scope)

    views = {table: view_of(table) for table in tables}
    loaded = {table for table in tables if keep and _is_loaded(seen, table, scope)}
    _make_tables(connection, views, place, seen, loaded)
    for name, statements in scripts.items():
        if name != scoping.SCRIPT:
            own = any((each / "queries" / f"{name}.sql").is_file() for each in extra)
            _make_views(connection, name, statements, keep=keep, own=own)
            if name == _SITE_SCRIPT:
                _fill_site(connection, site)
    return connection


def _asked(
    connection: "duckdb.DuckDBPyConnection",
    texts: dict[str, str],
    sql: str | None,
    *,
    keep: bool,
) -> tuple[dict[str, list["duckdb.Statement"]], list[str]]:
    """Return the statements of views, by script, and the tables that the SQL reaches; None: all."""
    reached = texts if sql is None else reached_scripts(sql, texts)
    scripts = {
        name: statements_of(connection, name, kept(text) if keep else text)
        for name, text in reached.items()
    }
    if sql is None:
        return scripts, list(TABLES)
    scripts, told = reached_statements(sql, scripts, whole={_SITE_SCRIPT})
    return scripts, [table for table in TABLES if table in told]


def tables_reached(
    connection: "duckdb.DuckDBPyConnection", sql: str, extra: Sequence[Path] = ()
) -> list[str]:
    """Return the tables of the store that some SQL reads, itself or through views."""
    return _asked(connection, view_scripts(extra), sql, keep=False)[1]


def _stored_bytes(seen: Snapshot) -> int:
    return sum(part.size_bytes for table in TABLES for part in seen.parts(table).values())


def _fetch(store: Path, seen: Snapshot, tables: Iterable[str]) -> None:
    """Bring the parts of some tables to this machine."""
    parts = {key: part for table in tables for key, part in seen.parts(table).items()}
    storage_of(store).fetch(parts)


def runs_of(store: Path) -> tuple[Run, ...]:
    """Return the runs of the jobs whose files a store holds."""
    queries = content.files("queries", ".sql")
    traces, told = (queries[name].read_text(encoding="utf-8") for name in (_TRACES, _ALLOCATIONS))
    with open_session(store, f"{traces};\n{told}", runs=()) as connection:
        allocations = [allocation_of(row) for row in connection.execute(told).fetchall()]
        return find_runs(
            [Trace(*row) for row in connection.execute(traces).fetchall()], allocations
        )


def _check_content(connection: "duckdb.DuckDBPyConnection", extra: Sequence[Path]) -> None:
    """Raise ContentError if SQL of the user's own content does more than read."""
    for directory in extra:
        for path in sorted((directory / "queries").rglob("*.sql")):
            script = path.relative_to(directory / "queries").parts[0] == "views"
            try:
                (check_script if script else check_read_only)(connection, content.read_text(path))
            except ParseError:
                continue  # who asks it is told; nothing else needs it
            except QueryError as error:
                raise content.ContentError(f"{path}: {error}") from error


def _is_loaded(seen: Snapshot, table: str, scope: scoping.Scope | None) -> bool:
    """Say whether a session that asks many questions holds a table in memory."""
    sizes = [part.size_bytes for part in seen.parts(table).values()]
    if sum(sizes) > _MOST_LOADED_BYTES:
        return False
    return scope is not None or sum(sizes) <= _MOST_LOADED_BYTES_A_PART * len(sizes)


def _make_tables(
    connection: "duckdb.DuckDBPyConnection",
    tables: Mapping[str, str],
    store: Path,
    seen: Snapshot,
    loaded: Container[str],
) -> None:
    """Make the base views by their statements; PartError names a part that is broken or odd.

    Those of tables that are `loaded` are held in memory.
    """
    import duckdb

    for table, view in tables.items():
        parts = seen.parts(table)
        try:
            with within_memory(connection):
                connection.execute(kept(view) if table in loaded else view)
        except duckdb.Error as error:
            odd = odd_part(connection, table, [store / key for key in parts])
            if odd is None:
                raise
            raise PartError(odd) from error
        made = connection.table(table)
        for odd in odd_columns(table, dict(zip(made.columns, map(str, made.types), strict=True))):
            named = odd_part(connection, table, [store / key for key in parts])
            raise PartError(named or f"{str(store)!r}: table {table}: {odd}")


def _make_views(
    connection: "duckdb.DuckDBPyConnection",
    name: str,
    statements: Sequence["duckdb.Statement"],
    *,
    keep: bool,
    own: bool,
) -> None:
    """Make the views of a script; `own` says that it is of the user's content."""
    import duckdb

    try:
        with within_memory(connection):
            if keep and not own and name in _KEPT_RATES:
                make_kept_rates(connection, _KEPT_RATES[name])
            else:
                for statement in statements:
                    connection.execute(statement)
            if keep:
                connection.execute("CHECKPOINT")
    except duckdb.IOException:
        raise  # a writer beside this one replaced a batch: `newest_time` looks again
    except duckdb.Error as error:
        raise content.ContentError(f"queries/{name}.sql: {one_line(error)}") from error


def _fill_site(connection: "duckdb.DuckDBPyConnection", site: Site) -> None:
    for rate in site.link_rates:
        connection.execute(
            "INSERT INTO site_link_rates VALUES (?, ?, ?)",
            [rate.device, rate.port, rate.speed_gbps],
        )
    for priority in site.priorities:
        connection.execute("INSERT INTO site_priorities VALUES (?)", [priority])


def columns_by_name(connection: "duckdb.DuckDBPyConnection") -> dict[str, list[tuple[str, str]]]:
    """Return name and type of the columns of every table and view of a session, by its name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, column, kind in connection.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE NOT internal ORDER BY table_name, column_index"
    ).fetchall():
        found.setdefault(name, []).append((column, kind))
    return found


def keywords(connection: "duckdb.DuckDBPyConnection") -> list[str]:
    """Return the words of DuckDB's SQL, in small letters."""
    rows = connection.execute("SELECT keyword_name FROM duckdb_keywords() ORDER BY 1").fetchall()
    return [row[0] for row in rows]


def newest_time(store: Path, no_later_than: datetime) -> datetime | None:
    """Return the time of the newest step, collective or counter; None if none has one.

    The time a file was last changed counts only where nothing else tells; times after
    `no_later_than` are those of a clock that is wrong. Both are UTC without a zone.
    """
    import duckdb

    for attempt in range(_MOST_LOOKS):
        try:
            row = _newest_times(store, no_later_than)
            break
        except duckdb.IOException:
            # A writer beside this one replaced a batch between the look for it and the reading.
            if attempt == _MOST_LOOKS - 1:
                raise
    times: tuple[datetime | None, datetime | None] = row or (None, None)
    return times[0] or times[1]


def _newest_times(
    store: Path, no_later_than: datetime
) -> tuple[datetime | None, datetime | None] | None:
    asked = "steps collectives port_samples priority_samples"
    with open_session(store, asked, runs=()) as connection:
        return connection.execute(
            "SELECT max(ts) FILTER (ts_source <> 'mtime'), max(ts) FROM ("
            + " UNION ALL ".join(
                f"SELECT ts, ts_source FROM {table}"
                for table in ("steps", "collectives", "port_samples", "priority_samples")
            )
            + ") WHERE ts <= ?",
            [no_later_than],
        ).fetchone()


def rounded(rows: "duckdb.DuckDBPyRelation") -> "duckdb.DuckDBPyRelation":
    """Round decimal columns to four places for reading; numbers below a thousandth stay."""
    columns = []
    for name, kind in zip(rows.columns, rows.types, strict=True):
        quoted = '"' + name.replace('"', '""') + '"'
        short = f"CASE WHEN abs({quoted}) < 1e-3 THEN {quoted} ELSE round({quoted}, 4) END"
        columns.append(f"{short} AS {quoted}" if str(kind) in {"DOUBLE", "FLOAT"} else quoted)
    return rows.project(", ".join(columns))
