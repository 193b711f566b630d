"""Ingest: discover -> recognise -> read -> write, on any executor.

Files are planned into batches; a batch is read and committed by one worker that shares nothing
with the others, so threads, processes or machines may run them.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    Executor,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fabricobs.formats.catalogue import Format, load_catalogue
from fabricobs.formats.context import Context
from fabricobs.formats.reading import FileResult, count_lines, read_file, reads_by_columns
from fabricobs.formats.rows import Rows
from fabricobs.planning import (
    FileOutcome,
    Known,
    Options,
    PlannedFile,
    batches_of,
    discover,
    plan_file,
)
from fabricobs.store.parts import BatchWriter, Store
from fabricobs.store.tables import TABLES

_PARALLEL_BYTES = 64 << 20


@dataclass(slots=True)
class IngestReport:
    """Every file of the input, in path order."""

    outcomes: list[FileOutcome] = field(default_factory=list)

    @property
    def read(self) -> list[FileOutcome]:
        """Return the files that were read now."""
        return [o for o in self.outcomes if o.formats and not o.unchanged]

    @property
    def problems(self) -> list[FileOutcome]:
        """Return the files that could not be read, or not to their end."""
        return [o for o in self.outcomes if o.problem is not None]

    @property
    def unrecognised(self) -> list[FileOutcome]:
        """Return the files that show no known format."""
        return [o for o in self.outcomes if o.unrecognised is not None]


Progress = Callable[[FileOutcome], None]
_Run = Callable[[Sequence[list[PlannedFile]], Store, Options, int], Iterator[list[FileOutcome]]]


def ingest(
    inputs: Sequence[Path],
    store: Store,
    options: Options,
    *,
    workers: int = 1,
    progress: Progress = lambda outcome: None,
) -> IngestReport:
    """Read every file below `inputs` into the store; StoreError if it cannot be written.

    A file whose rows are there already is left alone; a file that has grown takes the place of
    what it was.
    """
    store.create()
    store.settle()
    catalogue = load_catalogue(options.content)
    report = IngestReport()
    known = Known(store.known_files())
    plan: list[PlannedFile] = []
    for path, below_root, root_name in discover(inputs, store.path):
        planned = plan_file(path, below_root, root_name, catalogue, options, known)
        if isinstance(planned, FileOutcome):
            report.outcomes.append(planned)
            progress(planned)
        else:
            plan.append(planned)
            known.add(planned)
    batches = list(batches_of(plan))
    run = _executor_for(plan) if workers > 1 and len(batches) > 1 else _here
    for outcomes in run(batches, store, options, workers):
        report.outcomes.extend(outcomes)
        for outcome in outcomes:
            progress(outcome)
    store.settle()
    report.outcomes.sort(key=lambda outcome: str(outcome.path))
    return report


def _executor_for(plan: Sequence[PlannedFile]) -> _Run:
    """Choose who reads: threads where compiled code does the work, else processes if they pay."""
    by_columns = sum(p.size_bytes for p in plan if reads_by_columns(p.recognised, p.size_bytes))
    by_lines = sum(p.size_bytes for p in plan) - by_columns
    if by_lines >= _PARALLEL_BYTES:
        return _in_processes
    return _in_threads if by_columns >= _PARALLEL_BYTES else _here


def _here(
    batches: Sequence[list[PlannedFile]], store: Store, options: Options, workers: int
) -> Iterator[list[FileOutcome]]:
    for batch in batches:
        yield ingest_batch(batch, store.path, options)


def _in_threads(
    batches: Sequence[list[PlannedFile]], store: Store, options: Options, workers: int
) -> Iterator[list[FileOutcome]]:
    yield from _gathered(ThreadPoolExecutor(workers), batches, store, options)


def _in_processes(
    batches: Sequence[list[PlannedFile]], store: Store, options: Options, workers: int
) -> Iterator[list[FileOutcome]]:
    # Forking a process that has started threads may hang the child: start clean ones.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    yield from _gathered(pool, batches, store, options)


def _gathered(
    pool: Executor, batches: Sequence[list[PlannedFile]], store: Store, options: Options
) -> Iterator[list[FileOutcome]]:
    with pool:
        futures = [pool.submit(ingest_batch, batch, store.path, options) for batch in batches]
        for future in as_completed(futures):
            yield future.result()


def ingest_batch(
    batch: Sequence[PlannedFile], store_path: Path, options: Options
) -> list[FileOutcome]:
    """Read the files of one batch and commit their rows together."""
    store = Store(store_path)
    writer = BatchWriter(store)
    spans: dict[str, tuple[Any, Any]] = {}
    rows = Rows()

    def flush() -> None:
        for table, part in rows.drain():
            _widen(spans, part)
            writer.write(table, part)

    try:
        results = [(planned, _read(planned, options, rows, flush)) for planned in batch]
        flush()
        used = {f.name: f for planned in batch for f in planned.recognised.formats}
        for planned, result in results:
            _add_account(rows, planned, result, options, spans)
        for format_ in used.values():
            _add_counter_info(rows, format_)
        flush()
        store.commit(writer, [planned.file_id for planned in batch])
    except BaseException:
        writer.discard()
        raise
    return [_outcome(planned, result) for planned, result in results]


def _read(
    planned: PlannedFile, options: Options, rows: Rows, flush: Callable[[], None]
) -> FileResult:
    if not planned.recognised.formats:
        return FileResult(count_lines(planned.path), 0)
    context = Context(planned.file_id, options.job, planned.place, options.tzinfo)
    context.from_path.update(planned.from_path)
    return read_file(planned.path, planned.recognised, context, rows, flush)


def _widen(spans: dict[str, tuple[Any, Any]], part: pa.Table) -> None:
    """Keep the earliest and latest time of each file's rows."""
    if "ts" not in part.column_names or "file_id" not in part.column_names:
        return
    for file_id, earliest, latest in _times(part.select(["file_id", "ts"]).combine_chunks()):
        times = [earliest, latest, *spans.get(file_id, (None, None))]
        given = [time for time in times if time is not None]
        if given:
            spans[file_id] = (min(given), max(given))


def _times(rows: pa.Table) -> list[tuple[str, Any, Any]]:
    """Return file, earliest and latest time; one file's rows, the usual case, need no grouping."""
    files = rows["file_id"].unique().to_pylist()
    if len(files) == 1:
        span = pc.min_max(rows["ts"]).as_py()
        return [(files[0], span["min"], span["max"])]
    plain = rows.set_column(0, "file_id", rows["file_id"].cast(pa.string()))
    grouped = plain.group_by("file_id").aggregate([("ts", "min"), ("ts", "max")]).to_pylist()
    return [(row["file_id"], row["ts_min"], row["ts_max"]) for row in grouped]


def _add_account(
    rows: Rows,
    planned: PlannedFile,
    result: FileResult,
    options: Options,
    spans: dict[str, tuple[Any, Any]],
) -> None:
    tally = result.tally
    first, last = spans.get(planned.file_id, (None, None))
    rows.add(
        "files",
        {
            "file_id": planned.file_id,
            "job": options.job,
            "path": str(planned.path),
            "size_bytes": planned.size_bytes,
            "modified": planned.modified_us,
            "content": planned.content,
            "settings": planned.settings,
            "formats": ",".join(f.name for f in planned.recognised.formats),
            "device": planned.place.device,
            "lines": tally.lines,
            "parsed": tally.parsed,
            "ignored": tally.ignored,
            "unparsed": tally.unparsed,
            "unclaimed": tally.unclaimed,
            "rows": result.rows,
            "ts_first": first,
            "ts_last": last,
            "problem": result.problem,
            "replaces": planned.replaces,
        },
    )
    for number, reason, text in (*tally.samples, *tally.unclaimed_samples):
        rows.add(
            "unparsed",
            {"file_id": planned.file_id, "line": number, "reason": reason, "text": text},
        )


def _add_counter_info(rows: Rows, format_: Format) -> None:
    """Say how each counter the format may fill counts."""
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
                    "unit": column.unit,
                },
            )


def _outcome(planned: PlannedFile, result: FileResult) -> FileOutcome:
    tally = result.tally
    samples = tally.samples or tally.unclaimed_samples
    return FileOutcome(
        path=planned.path,
        formats=tuple(f.name for f in planned.recognised.formats),
        lines=tally.lines,
        parsed=tally.parsed,
        ignored=tally.ignored,
        unparsed=tally.unparsed,
        unclaimed=tally.unclaimed,
        rows=result.rows,
        problem=result.problem,
        unrecognised=planned.recognised.reason or None,
        unused=result.unused,
        first_unread=samples[0] if samples else None,
    )
