"""The account of each file of a batch: its rows in `files` and `unparsed`, and its outcome."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fabricobs.formats.identity import UNKNOWN
from fabricobs.formats.identity.names import dated
from fabricobs.formats.identity.times import time_of_path
from fabricobs.formats.reading import FileResult
from fabricobs.formats.recognition.format import Format
from fabricobs.formats.rows import Rows
from fabricobs.inputs import FileOutcome, Options, not_kept, path_text
from fabricobs.planning import PlannedFile
from fabricobs.store.tables import TABLES

_SHAPES = 10
# What tells how long a step took: itself, a clock of the training, or when it began and was logged.
_STEP_TIMES = ("step_time_ms", "elapsed_ms", "started", "ts")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_PORT = (
    "its counters name no port: put the interface into the file's name, as "
    "ethtool_eth0.txt, or say where it stands with --host-from '{host}/{port}.txt'"
)


@dataclass(slots=True)
class RowFacts:
    """Facts about the rows of a batch that the accounts of its files need."""

    spans: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # first and last time by file
    unknown_ports: set[str] = field(default_factory=set)  # what stands for those nothing names
    unknown_devices: set[str] = field(default_factory=set)
    untimed_steps: Counter[str] = field(default_factory=Counter)  # by file

    def add(self, table: str, part: pa.Table) -> None:
        """Add the facts of some rows of a table."""
        self._widen_spans(part)
        if table == "steps":
            self.untimed_steps.update(_untimed_steps(part))
        if table != "files":  # they may have an identity that no row needed
            self.unknown_ports.update(_unknown_names(part, "port"))
            for column in ("device", "host"):
                self.unknown_devices.update(_unknown_names(part, column))

    def completed(self, planned: PlannedFile, result: FileResult, rows: Rows) -> FileResult:
        """Return the result of a file with the problems that only its rows show."""
        if result.problem is None and f"{UNKNOWN}{path_text(planned.path)}" in self.unknown_ports:
            result = result.with_note(_NO_PORT)
        result = result.with_note(rows.unfit.of_file(planned.file_id))
        return replace(result, untimed_steps=self.untimed_steps[planned.file_id])

    def _widen_spans(self, part: pa.Table) -> None:
        """Keep the earliest and latest time of each file's rows."""
        if "ts" not in part.column_names or "file_id" not in part.column_names:
            return
        for file_id, earliest, latest in _times(part.select(["file_id", "ts"]).combine_chunks()):
            times = [earliest, latest, *self.spans.get(file_id, (None, None))]
            given = [time for time in times if time is not None]
            if given:
                self.spans[file_id] = (min(given), max(given))


def _times(rows: pa.Table) -> list[tuple[str, Any, Any]]:
    """Return file, earliest and latest time; one file's rows, the usual case, need no grouping."""
    files = rows["file_id"].unique().to_pylist()
    if len(files) == 1:
        span = pc.min_max(rows["ts"]).as_py()
        return [(files[0], span["min"], span["max"])]
    plain = rows.set_column(0, "file_id", rows["file_id"].cast(pa.string()))
    grouped = plain.group_by("file_id").aggregate([("ts", "min"), ("ts", "max")]).to_pylist()
    return [(row["file_id"], row["ts_min"], row["ts_max"]) for row in grouped]


def _unknown_names(part: pa.Table, column: str) -> Iterator[str]:
    """Yield what stands in a column for names that nothing tells."""
    if column in part.column_names:
        for chunk in part[column].chunks:
            texts = chunk.dictionary if isinstance(chunk, pa.DictionaryArray) else chunk
            found = pc.filter(texts, pc.starts_with(texts, UNKNOWN))
            yield from (name for name in found.to_pylist() if name is not None)


def _untimed_steps(steps: pa.Table) -> Iterator[str]:
    """Yield the file of each step that tells neither how long it took nor when it was."""
    timed = [pc.is_valid(steps[name]) for name in _STEP_TIMES if name in steps.column_names]
    untimed = pc.invert(reduce(pc.or_, timed)) if timed else pa.scalar(True)
    yield from steps.filter(untimed)["file_id"].to_pylist()


def add_account(
    rows: Rows,
    planned: PlannedFile,
    result: FileResult,
    options: Options,
    facts: RowFacts,
) -> None:
    """Add the rows of a file to `files` and `unparsed`."""
    tally = result.tally
    first, last = facts.spans.get(planned.file_id, (None, None))
    rows.add(
        "files",
        {
            "file_id": planned.file_id,
            "job": options.job,
            "path": path_text(planned.path),
            "size_bytes": planned.size_bytes,
            "modified": planned.modified_us,
            **_dated(planned, options.tzinfo),
            "content": planned.content,
            "settings": planned.settings,
            "formats": ",".join(planned.recognised.names),
            "device": planned.identity.device,
            "device_source": planned.identity.device_source,
            "rank": planned.identity.rank,
            "lines": tally.lines,
            "parsed": tally.parsed,
            "ignored": tally.ignored,
            "not_kept": not_kept(tally.not_kept.most_common()) or None,
            "unparsed": tally.unparsed,
            "unclaimed": tally.unclaimed,
            "rows": result.rows,
            "untimed_steps": result.untimed_steps,
            "ts_first": first,
            "ts_last": last,
            "problem": result.problem,
            "replaces": planned.replaces,
            "repeats": None if planned.repeats is None else path_text(planned.repeats.path),
        },
    )
    for number, reason, text in (*tally.samples, *tally.unclaimed_samples):
        rows.add(
            "unparsed",
            {"file_id": planned.file_id, "line": number, "reason": reason, "text": text},
        )


def _dated(planned: PlannedFile, zone: tzinfo) -> dict[str, Any]:
    """Return the time that the path of a file states, unless it is that of its last change.

    A file that is given by itself has its folder's: identities take only what lies below an input.
    """
    told = planned.told
    if told.ts is not None and told.ts_source != "mtime":
        return {"dated": told.ts, "dated_source": told.ts_source}
    time = time_of_path(tuple(map(dated, Path(planned.path).parts[-2:])), zone)
    if time.ts is None:
        return {}
    return {"dated": time.ts, "dated_source": "day" if time.is_day else "filename"}


def add_counter_info(rows: Rows, format_: Format) -> None:
    """Add width, overflow and kind of each counter that the format may fill."""
    counters = format_.definition.counters
    if counters is None:
        return
    for table in ("port_samples", "priority_samples"):
        for column in TABLES[table].columns:
            if column.type != "BIGINT" or column.name in {"line", "priority"}:
                continue
            kind = counters.columns.get(column.name, counters)
            rows.add(
                "counter_info",
                {
                    "format": format_.name,
                    "table_name": table,
                    "counter": column.name,
                    "width": kind.width,
                    "overflow": kind.overflow,
                    "kind": kind.kind,
                    "unit": kind.unit or column.unit,
                },
            )


def outcome_of(planned: PlannedFile, result: FileResult, facts: RowFacts) -> FileOutcome:
    """Return the account of a file as the report of an ingest has it."""
    tally = result.tally
    samples = tally.samples or tally.unclaimed_samples
    return FileOutcome(
        path=planned.path,
        formats=planned.recognised.names,
        lines=tally.lines,
        parsed=tally.parsed,
        ignored=tally.ignored,
        not_kept=tuple(tally.not_kept.most_common()),
        unparsed=tally.unparsed,
        unclaimed=tally.unclaimed,
        rows=result.rows,
        problem=result.problem,
        unexpected=result.unexpected,
        unrecognised=planned.recognised.reason or None,
        first_unread=samples[0] if samples else None,
        size_bytes=planned.size_bytes,
        stored=True,
        span=facts.spans.get(planned.file_id),
        shapes=tuple(tally.shapes.most_common(_SHAPES)),
        untimed_steps=result.untimed_steps,
        unknown_device=planned.identity.device
        if planned.identity.device in facts.unknown_devices
        else None,
        doubt=planned.identity.doubt,
        timed_by_change=_is_timed_by_change(planned, facts),
    )


def _is_timed_by_change(planned: PlannedFile, facts: RowFacts) -> bool:
    """Say whether rows of a file have the time of its last change."""
    identity, span = planned.identity, facts.spans.get(planned.file_id, ())
    return identity.ts_source == "mtime" and identity.ts in [_microseconds(time) for time in span]


def _microseconds(time: datetime) -> int:
    return (time.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
