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

_OF_JOB = {"nccl_events"}
_MOST_AFFECTED = 64  # parts that are asked for
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

    Rows of `proving`, the `lines` of its models, tell it, of the culprits or of what they affect,
    and those of its query's `lines`, of the culprits or of the job, else all rows of the tables.
    Where readings of counters tell it, only such lines of the culprits stand beside them.
    """
    measures = dict(query.peers)
    proved = _proving(connection, finding, [*proving.items()], aliases)
    readings = counter_readings(connection, finding, query.counters, rows, aliases)
    if readings:
        lines = [(table, condition) for table, condition in query.lines if table not in NAMED]
        files = source_files(connection, finding, lines, aliases, measures)
        return SourceInput(readings, _once((*proved, *files)))
    telling = sorted({*reached} - _IDENTITIES, key=_tells)
    all_rows = [(table, "true") for table in telling]
    of_job = replace(finding, entities=())
    for told, of in ((query.lines, finding), (query.lines, of_job), (all_rows, finding)):
        if files := source_files(connection, of, told, aliases, measures):
            return SourceInput(files=_once((*files, *proved)))
    return SourceInput(files=proved)


def _proving(
    connection: "DuckDBPyConnection",
    finding: Finding,
    lines: Sequence[tuple[str, str]],
    aliases: Aliases,
) -> tuple[SourceFiles, ...]:
    """Return where rows that prove a finding stand: of the culprits, else of what they affect.

    What NCCL and its watchdog say of a job tells of the ranks that wait, too.
    """
    affected = replace(finding, entities=finding.related[:_MOST_AFFECTED])
    of_job = [(table, condition) for table, condition in lines if table in _OF_JOB]
    asked = [
        (finding, lines),
        *([(affected, lines)] if affected.entities else []),
        (replace(finding, entities=()), of_job),
    ]
    return _once([f for of, told in asked for f in source_files(connection, of, told, aliases)])


def _once(files: Sequence[SourceFiles]) -> tuple[SourceFiles, ...]:
    """Return the first files of each kind."""
    return tuple({files.formats: files for files in reversed(files)}.values())[::-1]


def _tells(table: str) -> int:
    """Order tables: counters and times of steps tell more than what names or sets something."""
    measured = (*NAMED, "steps", "collectives", "events")
    return measured.index(table) if table in measured else len(measured)
