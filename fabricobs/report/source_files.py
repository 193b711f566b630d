"""The input files and lines that tell of a finding, of its culprits and in its time."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
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
_COUNTERS = {"port_samples", "priority_samples"}
# What tells who is who at any time, and no event or measurement.
_IDENTITIES = {"files", "hosts", "host_map", "links", "counter_info"}
# Counters are read before and after what they tell, by clocks that are apart.
_AROUND = timedelta(minutes=1)
_READ_WITHIN = timedelta(minutes=10)  # most sites do
_MOST = 6
_NEVER = "TIMESTAMP '9999-01-01'"


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files of one kind that tell of a finding, and where its first row in its time stands.

    Counters tell by what they rise: `later` is where they are read once the finding shows.
    """

    formats: str
    files: int
    rows: int
    path: str
    line: int | None
    timed: bool
    later_path: str | None = None
    later_line: int | None = None

    @property
    def words(self) -> str:
        """Return what it holds: how many rows of which formats in how many files."""
        rows, files = counted(self.rows, "row"), counted(self.files, "file")
        untimed = "" if self.timed else " without times"
        how = "from" if self.later is None else "compare"
        return f"{self.formats.replace(',', ', ')}: {rows}{untimed} in {files}, {how}"

    @property
    def place(self) -> str:
        """Return where the first row stands, as compilers write it."""
        return _place(self.path, self.line)

    @property
    def later(self) -> str | None:
        """Return where the row stands with which to compare it, None where none is."""
        same = (self.later_path, self.later_line) == (self.path, self.line)
        if self.later_path is None or same:
            return None
        return _place(self.later_path, self.later_line)


def _place(path: str, line: int | None) -> str:
    return path if line is None else f"{path}:{line}"


def source_files(
    connection: "DuckDBPyConnection",
    finding: Finding,
    reached: Sequence[str],
    lines: Sequence[tuple[str, str]],
    aliases: Aliases,
) -> tuple[SourceFiles, ...]:
    """Return where the input tells of a finding, by kind of file.

    `reached` are the tables that its query reads, `lines` those and the rows of them that tell it,
    if the query says so: where none is of a culprit, those of the whole job.
    """
    all_rows = [(table, "true") for table in reached if table not in _IDENTITIES]
    of_job = replace(finding, entities=())
    for told, of in ((lines, finding), (lines, of_job), (all_rows, finding)):
        selects = [
            select
            for table, condition in told
            for select in _selects(of, table, condition, aliases)
        ]
        if selects and (files := _of_selects(connection, finding, selects)):
            return files
    return ()


def _of_selects(
    connection: "DuckDBPyConnection", finding: Finding, selects: Sequence[str]
) -> tuple[SourceFiles, ...]:
    begin, shown = (
        _NEVER if moment is None else timestamp_literal(moment)
        for moment in (finding.start, finding.detected_at)
    )
    # Of counters the last reading before it, of all else the first row in its time.
    too_early = f"coalesce(r.ts < {begin}, false)"
    reading = f"coalesce(r.counts AND r.ts <= {begin}, false)"
    first = f"""(r.ts IS NULL, NOT {reading}, {too_early} AND NOT {reading},
      epoch(coalesce(r.ts, {_NEVER})) * CASE WHEN {reading} THEN -1 ELSE 1 END, f.path)"""
    later = f"FILTER (r.counts AND r.ts > {begin} AND r.ts >= {shown})"
    told = connection.execute(
        f"""
        SELECT f.formats, count(DISTINCT f.file_id), count(*),
          arg_min(f.path, {first}), arg_min(r.line, ({first}, r.line)), count(r.ts) > 0,
          arg_min(f.path, (r.ts, f.path)) {later}, arg_min(r.line, (r.ts, f.path, r.line)) {later}
        FROM ({" UNION ALL ".join(selects)}) r JOIN files f USING (file_id)
        GROUP BY f.formats
        ORDER BY count(*) DESC, f.formats
        LIMIT {_MOST}
        """
    )
    return tuple(SourceFiles(*row) for row in told.fetchall())


def _selects(finding: Finding, table: str, condition: str, aliases: Aliases) -> Iterator[str]:
    columns = {column.name for column in TABLES[table].columns}
    if not {"file_id", "line"} <= columns:
        return
    named = [_is(entity, columns, aliases) for entity in finding.entities] or ["true"]
    if not any(named):
        return
    parts = " OR ".join(dict.fromkeys(f"({test})" for test in named if test))
    during = ""
    if "ts" in columns and finding.start is not None:
        since = finding.start - (_READ_WITHIN if table in _COUNTERS else _AROUND)
        during = f" AND coalesce(ts >= {timestamp_literal(since)}, true)"
        if finding.end is not None:
            during += f" AND coalesce(ts <= {timestamp_literal(finding.end + _AROUND)}, true)"
    ts = "ts" if "ts" in columns else "NULL::TIMESTAMP AS ts"
    source, counts = _NAMED.get(table, table), str(table in _COUNTERS).lower()
    yield (
        f"SELECT file_id, line, {ts}, {counts} AS counts FROM {source} "
        f"WHERE ({condition}) AND ({parts}){during}"
    )


def _is(entity: Entity, columns: Container[str], aliases: Aliases) -> str:
    """Return the condition that a row of a table is of the entity, empty where no column tells."""
    if entity.rank is not None and "rank" in columns:
        # Another job may have a rank of this number on another host.
        is_here = entity.host and "host" in columns
        here = f"coalesce(host_name(host) = {literal(entity.host or '')}, true)"
        return f"rank = {entity.rank}{f' AND {here}' if is_here else ''}"
    if entity.type == "job" and entity.job is not None:
        return f"job = {literal(entity.job)}" if "job" in columns else ""
    owner, parts = entity.host or entity.switch, "part" in columns
    column = next((name for name in ("device", "host") if name in columns), None)
    # Of tables of hosts those of events have switches, too.
    if owner is None or column is None or (column == "host" and entity.switch and not parts):
        return ""
    is_owner = (
        f"host_name({column}) = {literal(owner)}" if entity.host else f"{column} = {literal(owner)}"
    )
    names = [entity.port] if entity.port else []
    if entity.nic:
        names = [entity.nic, *aliases.get((entity.host or "", entity.nic), ())]
    if not names:
        return is_owner
    part = next((name for name in ("port", "nic", "part") if name in columns), None)
    if part is None:
        return ""
    # A NIC is meant by its port, too: mlx5_0 by mlx5_0/1.
    called = [part, f"split_part({part}, '/', 1)"] if entity.nic else [part]
    listed = ", ".join(dict.fromkeys(literal(name) for name in names))
    return f"{is_owner} AND ({' OR '.join(f'{name} IN ({listed})' for name in called)})"
