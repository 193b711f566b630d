"""The input files and lines in which a finding's culprits are told of, in its time."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.report.evidence_rows import Aliases, timestamp_literal
from fabricobs.report.wording import counted
from fabricobs.store.sandbox import literal
from fabricobs.store.tables import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Rows of counters bear the names of the part that is meant, whatever the file calls it.
_NAMED = {
    "port_samples": "named_samples",
    "priority_samples": "named_priority_samples",
    "port_status": "named_status",
}
NAMES = "\n".join(f"FROM {name};" for name in (*_NAMED.values(), "files"))
# What tells who is who at any time, and no event or measurement.
_IDENTITIES = {"files", "hosts", "host_map", "links", "counter_info"}
# Counters are read before and after what they tell, by clocks that are apart.
_AROUND = timedelta(minutes=1)
_MOST = 6
_NEVER = "TIMESTAMP '9999-01-01'"


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files of one kind that tell of a finding, and where the first of its rows stand."""

    formats: str
    files: int
    rows: int
    path: str
    line: int | None
    timed: bool

    @property
    def words(self) -> str:
        """Return what it holds: how many rows of which formats in how many files."""
        rows, files = counted(self.rows, "row"), counted(self.files, "file")
        untimed = "" if self.timed else " without times"
        return f"{self.formats.replace(',', ', ')}: {rows}{untimed} in {files}, from"

    @property
    def place(self) -> str:
        """Return where the first row stands, as compilers write it."""
        return self.path if self.line is None else f"{self.path}:{self.line}"


def source_files(
    connection: "DuckDBPyConnection", finding: Finding, reached: Sequence[str], aliases: Aliases
) -> tuple[SourceFiles, ...]:
    """Return where the input tells of a finding's culprits in its time, by kind of file.

    `reached` are the tables that its query reads. One without a culprit is of the whole job.
    """
    selects = [
        select
        for table in reached
        if table not in _IDENTITIES
        for select in _selects(finding, table, aliases)
    ]
    if not selects:
        return ()
    told = connection.execute(
        f"""
        SELECT f.formats, count(DISTINCT f.file_id), count(*),
          arg_min(f.path, (r.ts IS NULL, coalesce(r.ts, {_NEVER}), f.path)),
          arg_min(r.line, (r.ts IS NULL, coalesce(r.ts, {_NEVER}), f.path, r.line)), count(r.ts) > 0
        FROM ({" UNION ALL ".join(selects)}) r JOIN files f USING (file_id)
        GROUP BY f.formats
        ORDER BY count(*) DESC, f.formats
        LIMIT {_MOST}
        """
    )
    return tuple(SourceFiles(*row) for row in told.fetchall())


def _selects(finding: Finding, table: str, aliases: Aliases) -> Iterator[str]:
    columns = {column.name for column in TABLES[table].columns}
    if not {"file_id", "line"} <= columns:
        return
    named = [_is(entity, columns, aliases) for entity in finding.entities] or ["true"]
    if not any(named):
        return
    parts = " OR ".join(dict.fromkeys(f"({test})" for test in named if test))
    during = ""
    if "ts" in columns and finding.start is not None:
        during = f" AND coalesce(ts >= {timestamp_literal(finding.start - _AROUND)}, true)"
        if finding.end is not None:
            during += f" AND coalesce(ts <= {timestamp_literal(finding.end + _AROUND)}, true)"
    ts = "ts" if "ts" in columns else "NULL::TIMESTAMP AS ts"
    yield f"SELECT file_id, line, {ts} FROM {_NAMED.get(table, table)} WHERE ({parts}){during}"


def _is(entity: Entity, columns: Container[str], aliases: Aliases) -> str:
    """Return the condition that a row of a table is of the entity, empty where no column tells."""
    if entity.rank is not None and "rank" in columns:
        # Another job may have a rank of this number on another host.
        is_here = entity.host and "host" in columns
        here = f"coalesce(host_name(host) = {literal(entity.host or '')}, true)"
        return f"rank = {entity.rank}{f' AND {here}' if is_here else ''}"
    if entity.type == "job" and entity.job is not None:
        return f"job = {literal(entity.job)}" if "job" in columns else ""
    owner = entity.host or entity.switch
    column = next((name for name in ("device", "host") if name in columns), None)
    if owner is None or column is None or (column == "host" and entity.switch):
        return ""
    is_owner = (
        f"host_name({column}) = {literal(owner)}" if entity.host else f"device = {literal(owner)}"
    )
    names = [entity.port] if entity.port else []
    if entity.nic:
        names = [entity.nic, *aliases.get((entity.host or "", entity.nic), ())]
    if not names:
        return is_owner
    part = next((name for name in ("port", "nic") if name in columns), None)
    if part is None:
        return ""
    # A NIC is meant by its port, too: mlx5_0 by mlx5_0/1.
    called = [part, f"split_part({part}, '/', 1)"] if entity.nic else [part]
    listed = ", ".join(dict.fromkeys(literal(name) for name in names))
    return f"{is_owner} AND ({' OR '.join(f'{name} IN ({listed})' for name in called)})"
