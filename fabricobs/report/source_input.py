"""Where the input itself tells of a finding: readings of counters, and lines of all else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from fabricobs.diagnosis.findings import Finding
from fabricobs.querying import StoredQuery
from fabricobs.report.counter_readings import NAMED, CounterReadings, counter_readings
from fabricobs.report.evidence_rows import Aliases, EvidenceRows
from fabricobs.report.source_files import SourceFiles, source_files

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# What tells who is who at any time, and no event or measurement.
_IDENTITIES = {"files", "hosts", "host_map", "links", "counter_info"}

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SourceInput:
    """Counters before a finding and once it shows, and the files that tell of it, by kind."""

    readings: tuple[CounterReadings, ...] = ()
    files: tuple[SourceFiles, ...] = ()


def source_input(
    connection: "DuckDBPyConnection",
    finding: Finding,
    query: StoredQuery,
    reached: Sequence[str],
    rows: EvidenceRows | None,
    aliases: Aliases,
    proving: Mapping[str, str] = _NONE,
) -> SourceInput:
    """Return where the input tells of a finding; `reached` are the tables that its query reads.

    Rows of `proving`, the `lines` of its models, and of its query's `lines` tell it, of the
    culprits or of the job, else all rows of the tables.
    Where readings of counters tell it, only such lines of the culprits stand beside them.
    """
    measures, own = dict(query.peers), (*proving.items(), *query.lines)
    readings = counter_readings(connection, finding, query.counters, rows, aliases)
    if readings:
        lines = [(table, condition) for table, condition in own if table not in NAMED]
        return SourceInput(readings, source_files(connection, finding, lines, aliases, measures))
    telling = sorted({*reached} - _IDENTITIES, key=_tells)
    all_rows = [(table, "true") for table in telling]
    of_job = replace(finding, entities=())
    for told, of in ((own, finding), (own, of_job), (all_rows, finding)):
        if files := source_files(connection, of, told, aliases, measures):
            return SourceInput(files=files)
    return SourceInput()


def _tells(table: str) -> int:
    """Order tables: counters and times of steps tell more than what names or sets something."""
    measured = (*NAMED, "steps", "collectives", "events")
    return measured.index(table) if table in measured else len(measured)
