"""What the tables of a session show of the jobs: each row its run, or the rows of one run alone.

Rows of files no run has written (counters of switches, kernel logs) are shared: a run sees those of
its time, from its own hosts and the switches their cables lead to.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from fabricobs.store.jobs import Run, window_of
from fabricobs.store.tables import TABLES

if TYPE_CHECKING:
    import duckdb

SCRIPT = "views/0_jobs"

# Counters before and after a run that still tell of it: ten intervals of a minute.
_SLACK = timedelta(minutes=10)
# Filled by files that no run has written, and too large to join for nothing.
_COUNTERS = {"port_samples", "priority_samples"}
# What the fabric is, whoever uses it.
_WHOLE = {"links", "host_map", "counter_info", "findings", "unparsed"}


@dataclass(frozen=True, slots=True)
class Scope:
    """A run to see alone: hosts that only others have, and its own hosts and switches by all names.

    Without a known cable of its hosts, or known hosts, no switch is known to be its own.
    """

    run: Run
    others: frozenset[str]
    devices: frozenset[str]


def has_names(runs: Sequence[Run]) -> bool:
    """Say whether rows must be told their run: not where --job or nothing says all."""
    return any(part.given != run.label for run in runs for part in run.parts)


def tell_runs(connection: "duckdb.DuckDBPyConnection", runs: Sequence[Run]) -> None:
    """Fill the tables `jobs` and `job_files`."""
    _fill(connection, "jobs", [tuple(run.tells().values()) for run in runs])
    parts = [(p.file_id, p.given, p.first, p.end, run.label) for run in runs for p in run.parts]
    _fill(connection, "job_files", parts)


def tell_scope(connection: "duckdb.DuckDBPyConnection", scope: Scope) -> None:
    """Fill the tables `other_hosts` and `crossed_devices`."""
    _fill(connection, "other_hosts", [(name,) for name in sorted(scope.others)])
    _fill(connection, "crossed_devices", [(name,) for name in sorted(scope.devices)])


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
    part = "j.first_line = 0"
    if "line" in columns:
        part = (
            "CASE WHEN t.line IS NULL THEN j.first_line = 0 "
            "ELSE t.line >= j.first_line AND (j.end_line IS NULL OR t.line < j.end_line) END"
        )
    own = "true" if scope is None else f"j.job = {_quoted(scope.run.label)}"
    return (
        f"{head} AS SELECT t.* REPLACE "
        "(CASE WHEN j.first_line IS NULL THEN t.job ELSE j.job END AS job) "
        f"FROM ({select}) t LEFT JOIN job_files j ON j.file_id IS NOT DISTINCT FROM t.file_id "
        f"AND j.given IS NOT DISTINCT FROM t.job AND {part} "
        f"WHERE CASE WHEN j.first_line IS NULL THEN {shared} ELSE {own} END;"
    )


def _shared(table: str, columns: set[str], scope: Scope) -> str:
    """Return the condition for a row of the fabric to be the run's concern too."""
    wanted = [f"(t.job IS NULL OR t.job = {_quoted(scope.run.name)})"]
    begin, end = window_of(scope.run, _SLACK)
    if "ts" in columns and TABLES[table].dated:
        wanted += [
            f"(t.ts IS NULL OR t.ts {sign} TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}')"
            for sign, moment in ((">=", begin), ("<=", end))
            if moment is not None
        ]
    device = next((name for name in ("device", "host") if name in columns), None)
    if device is not None and table != "files":
        own = "(SELECT device FROM crossed_devices)"
        wanted.append(f"(t.{device} IN {own} OR split_part(t.{device}, '.', 1) IN {own})")
    return " AND ".join(wanted)


def _quoted(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def crossed(
    hosts: Iterable[str], all_hosts: Iterable[str], cables: Sequence[tuple[str, str]]
) -> frozenset[str]:
    """Return a job's hosts and the devices between them, as `cables`, pairs of devices, tell.

    These are the leaves of its hosts, and all beyond them that is not only others' leaf.
    """
    own, known = set(hosts), set(all_hosts)
    beside: dict[str, set[str]] = {}
    for a, b in cables:
        beside.setdefault(a, set()).add(b)
        beside.setdefault(b, set()).add(a)
    found = {leaf for host in own for leaf in beside.get(host, ())} - known
    reached = set(found)
    while reached:
        above = {device for switch in reached for device in beside[switch]} - known - found
        reached = {device for device in above if not beside[device] & known}
        found |= reached
    return frozenset(own | found)
