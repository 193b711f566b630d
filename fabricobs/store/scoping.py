"""The jobs that a session shows: each row with its run, or the rows of one run.

Rows of files no run has written (counters of switches, kernel logs) are shared: a run sees those of
its time, from its own hosts and the switches their cables lead to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from fabricobs.store.jobs import Run
from fabricobs.store.tables import TABLES

if TYPE_CHECKING:
    import duckdb

SCRIPT = "views/0_jobs"

# Filled by files that no run has written, and too large to join for nothing.
_COUNTERS = {"port_samples", "priority_samples"}
# What the fabric is, whoever uses it.
_WHOLE = {"links", "host_map", "allocations", "counter_info", "findings", "unparsed"}


@dataclass(frozen=True, slots=True)
class Window:
    """A time from `begin` to `end`, UTC, None where it is open; `undated`: and what has no time."""

    begin: datetime | None = None
    end: datetime | None = None
    undated: bool = True


@dataclass(frozen=True, slots=True)
class Scope:
    """What to see alone: a run, or with None the rows of the fabric without those of any run.

    `others` are hosts that only other runs have, `shared` its own that others use at the same
    time, `devices` the run's hosts and switches by all
    names (None: any), `windows` the times in which rows of these are its own. `moved` are its ranks
    that compute longer in another run of the job, too, on other hosts. `until` is when another run
    began on its hosts after it.
    """

    run: Run | None
    others: frozenset[str]
    devices: frozenset[str] | None = None
    windows: tuple[Window, ...] = (Window(),)
    shared: frozenset[str] = frozenset()
    moved: frozenset[int] = frozenset()
    until: datetime | None = None


def has_names(runs: Sequence[Run]) -> bool:
    """Say whether rows must be told their run: not where --job or nothing says all."""
    return any(part.given != run.label for run in runs for part in run.parts)


def fill_jobs(
    connection: "duckdb.DuckDBPyConnection", runs: Sequence[Run], shown: Sequence[Run]
) -> None:
    """Fill `jobs` and `allocated_hosts` with the runs that are shown, and `job_files` with all."""
    _fill(connection, "jobs", [tuple(run.tells().values()) for run in shown])
    allocated = [(run.label, host) for run in shown for host in run.allocated]
    _fill(connection, "allocated_hosts", allocated)
    parts = [(p.file_id, p.given, p.first, p.end, run.label) for run in runs for p in run.parts]
    _fill(connection, "job_files", parts)


def fill_scope(connection: "duckdb.DuckDBPyConnection", scope: Scope) -> None:
    """Fill the tables of a scope, such as `other_hosts`."""
    _fill(connection, "other_hosts", [(name,) for name in sorted(scope.others)])
    _fill(connection, "shared_hosts", [(name,) for name in sorted(scope.shared)])
    _fill(connection, "moved_ranks", [(rank,) for rank in sorted(scope.moved)])
    _fill(connection, "crossed_devices", [(name,) for name in sorted(scope.devices or ())])
    _fill(connection, "own_time", [] if scope.until is None else [(scope.until,)])


def _fill(
    connection: "duckdb.DuckDBPyConnection", table: str, rows: Sequence[tuple[object, ...]]
) -> None:
    """Insert rows, all at once: one by one each takes a millisecond."""
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        marks = ", ".join(["unnest(?)"] * len(columns))
        connection.execute(f"INSERT INTO {table} SELECT {marks}", columns)


def of_runs(view: str, table: str, runs: Sequence[Run], scope: Scope | None) -> str:
    """Return the statement of a table's view whose rows tell their run, or are those of one."""
    columns = {column.name for column in TABLES[table].columns}
    if "job" not in columns or table in _WHOLE or (scope is None and not has_names(runs)):
        return view
    head, _, select = view.rstrip("; \n").partition(" AS ")
    shared = "true" if scope is None else _shared(table, columns, scope)
    if table in _COUNTERS:
        return view if scope is None else f"{head} AS SELECT t.* FROM ({select}) t WHERE {shared};"
    # A file of several runs is a file of each; without a scope it is listed once.
    part = "true" if table == "files" and scope is not None else "j.first_line = 0"
    if "line" in columns:
        part = (
            "CASE WHEN t.line IS NULL THEN j.first_line = 0 "
            "ELSE t.line >= j.first_line AND (j.end_line IS NULL OR t.line < j.end_line) END"
        )
    own = (
        "true"
        if scope is None
        else "false"
        if scope.run is None
        else _job_in("j", scope.run.labels)
    )
    return (
        f"{head} AS SELECT t.* REPLACE "
        "(CASE WHEN j.first_line IS NULL THEN t.job ELSE j.job END AS job) "
        f"FROM ({select}) t LEFT JOIN job_files j ON j.file_id IS NOT DISTINCT FROM t.file_id "
        f"AND j.given IS NOT DISTINCT FROM t.job AND {part} "
        f"WHERE CASE WHEN j.first_line IS NULL THEN {shared} ELSE {own} END;"
    )


def _shared(table: str, columns: set[str], scope: Scope) -> str:
    """Return the condition for a row of the fabric to be the run's concern too."""
    wanted = ["true"]
    if scope.run is not None:
        wanted = [f"(t.job IS NULL OR {_job_in('t', scope.run.names)})"]
    if "ts" in columns and TABLES[table].dated:
        wanted.append(_within(scope.windows))
    device = next((name for name in ("device", "host") if name in columns), None)
    if device is not None and scope.devices is not None:
        own = "(SELECT device FROM crossed_devices)"
        wanted.append(f"(t.{device} IN {own} OR split_part(t.{device}, '.', 1) IN {own})")
    return " AND ".join(wanted)


def _within(windows: Sequence[Window]) -> str:
    """Return the condition for the time of a row to be in one of the windows."""
    return "(" + (" OR ".join(map(_in_window, windows)) or "false") + ")"


def _in_window(window: Window) -> str:
    bounds = [
        f"t.ts {sign} TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"
        for sign, moment in ((">=", window.begin), ("<=", window.end))
        if moment is not None
    ]
    dated = " AND ".join(["t.ts IS NOT NULL", *bounds])
    return f"({dated} OR t.ts IS NULL)" if window.undated else f"({dated})"


def _job_in(row: str, names: Sequence[str | None]) -> str:
    return f"{row}.job IN ({', '.join(map(_quoted, names))})"


def _quoted(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"
