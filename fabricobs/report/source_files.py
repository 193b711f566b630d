"""The input files and lines that tell of a finding, of its culprits and in its time."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.report.counter_readings import NAMED
from fabricobs.report.evidence_rows import Aliases, timestamp_literal
from fabricobs.report.input_lines import line_at, line_naming
from fabricobs.report.lines_to_compare import LineToCompare, line_to_compare, line_with
from fabricobs.report.rows_of_part import (
    condition_of,
    is_of_records,
    place,
    step_condition,
    time_condition,
)
from fabricobs.report.wording import counted
from fabricobs.store.tables import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NAMED = {**NAMED, "port_status": "named_status", "links": "named_links", "events": "named_events"}
_NAMED_TOO = {"events": {"gpu"}}  # what named rows have beside the columns of their table
NAMES = "\n".join(f"FROM {name};" for name in (*_NAMED.values(), "port_parts", "files"))
_STANDING = {"settings"}  # what they say holds until something else is read
_EVENTS = {"events", "nccl_events"}
_MOST = 6
_NO_MEASURES: Mapping[str, str] = MappingProxyType({})
_WORD = re.compile(r"\w")
_NEVER = "TIMESTAMP '9999-01-01'"


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files of one kind that tell of a finding, and where its first row in its time stands.

    `text` is that line, while the file is there. Of what is measured it is the first row by which
    the finding shows.
    """

    formats: str
    files: int
    rows: int
    path: str
    line: int | None
    timed: bool
    text: str = ""
    compared: LineToCompare | None = None

    @property
    def words(self) -> str:
        """Return what it holds: how many rows of which formats in how many files."""
        rows, files = counted(self.rows, "row"), counted(self.files, "file")
        untimed = "" if self.timed else " without times"
        begins = ", from" if self.compared is None else ""
        return f"{self.formats.replace(',', ', ')}: {rows}{untimed} in {files}{begins}"

    @property
    def place(self) -> str:
        """Return where the first row stands."""
        return place(self.path, self.line, self.formats)

    @property
    def lines(self) -> tuple[tuple[str, str, str], ...]:
        """Return what the first row says, where it stands, its text; so of the one to compare."""
        other = self.compared
        if other is None:
            return (("", self.place, self.text),)
        told, beside = other.words
        # A document is searched for what is quoted: the number of a record is the store's own.
        quoted = is_of_records(self.formats) and self.text and other.text
        places = (self.path, other.path) if quoted else (self.place, other.place)
        return (told, places[0], self.text), (beside, places[1], other.text)


def source_files(
    connection: "DuckDBPyConnection",
    finding: Finding,
    told: Sequence[tuple[str, str]],
    aliases: Aliases,
    measures: Mapping[str, str] = _NO_MEASURES,
) -> tuple[SourceFiles, ...]:
    """Return where rows of the culprits stand, by kind of file; of any part where none is named.

    `told` are tables, the strongest first, and the condition of those of their rows that count;
    `measures` are tables whose rows are compared, and by which column.
    """
    selects = [
        select
        for order, (table, condition) in enumerate(told)
        for select in _selects(finding, table, condition, aliases, order)
    ]
    if not selects:
        return ()
    first = f"(r.ts IS NULL, coalesce(r.ts < r.since, false), coalesce(r.ts, {_NEVER}), f.path)"
    rows = connection.execute(
        f"""
        SELECT f.formats, count(DISTINCT f.file_id), count(*),
          arg_min(f.path, {first}), arg_min(r.line, ({first}, r.line)), count(r.ts) > 0
        FROM ({" UNION ALL ".join(selects)}) r JOIN files f USING (file_id)
        GROUP BY f.formats
        ORDER BY min(r.listed), count(*) DESC, f.formats
        LIMIT {_MOST}
        """
    )
    found = [SourceFiles(*row) for row in rows.fetchall()]
    told_by = [_with_lines(connection, each, finding, measures, aliases) for each in found]
    # What reads alike there tells nothing where others differ.
    differing = [each for each in told_by if each.compared is None or each.compared.differs]
    return tuple(differing or told_by)


def _with_lines(
    connection: "DuckDBPyConnection",
    files: SourceFiles,
    finding: Finding,
    measures: Mapping[str, str],
    aliases: Aliases,
) -> SourceFiles:
    """Return files with the text of their first row, and with the line to compare it with."""
    if files.line is None:
        return files
    told = files.path, files.line, files.formats
    other = line_to_compare(connection, finding, measures, aliases, told)
    if other is not None:
        text = line_with(files.path, files.line, other.column, other.told, files.formats)
        return replace(files, text=text, compared=other)
    if is_of_records(files.formats):
        return files
    text = line_at(files.path, files.line)
    names = _names_in(files.path, finding.entities)
    if _WORD.search(text) or not names:
        return replace(files, text=text)
    # A document begins with a bracket: the line that names the part tells more.
    values = [driver.value for driver in finding.drivers]
    naming = line_naming(files.path, files.line, names, values)
    if naming is None:
        return replace(files, text=text)
    return replace(files, line=naming.number, text=naming.text)


def _names_in(path: str, entities: Sequence[Entity]) -> list[str]:
    """Return how a file calls the parts it is of, if its path names their switch or host."""
    own = [e for e in entities if (e.switch or e.host or "/") in path] or entities
    return [name for e in own if (name := e.port or e.nic or e.host) is not None]


def _selects(
    finding: Finding, table: str, condition: str, aliases: Aliases, order: int
) -> Iterator[str]:
    columns = {column.name for column in TABLES[table].columns} | _NAMED_TOO.get(table, set())
    if not {"file_id", "line"} <= columns:
        return
    if not (parts := condition_of(finding, columns, aliases)):
        return
    timed = "ts" in columns and table not in _STANDING
    during = time_condition(finding, counts=table in NAMED) if timed else ""
    during += step_condition(finding, columns)
    ts = "ts" if "ts" in columns else "NULL::TIMESTAMP AS ts"
    # Of events the first that its time holds: they have the clock of their host.
    shows = None if table in _EVENTS else finding.detected_at or finding.start
    since = "NULL::TIMESTAMP" if shows is None else timestamp_literal(shows)
    named = _NAMED.get(table, table)
    yield (
        f"SELECT file_id, line, {ts}, {since} AS since, {order} AS listed FROM {named} "
        f"WHERE ({condition}) AND ({parts}){during}"
    )
