"""Ingest: discover -> recognise -> read -> write, on any executor.

Files are planned into batches; a batch is read and committed by one worker that shares nothing
with the others, so threads, processes or machines may run them.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from fabricobs import seen
from fabricobs.formats.archive import members
from fabricobs.formats.context import Context
from fabricobs.formats.reading import FileResult, count_lines, read_file, reads_by_columns
from fabricobs.formats.recognition.catalogue import ARCHIVE, Catalogue, Format, load_catalogue
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.source import SourceError
from fabricobs.inputs import FileOutcome, IngestReport, InputFile, Options, discover
from fabricobs.machine import collect_seldom
from fabricobs.planning import (
    Known,
    PlannedFile,
    batches_of,
    beside_known,
    plan_file,
    plan_files,
    plan_member,
    unchanged,
)
from fabricobs.store.parts import BatchWriter, Store
from fabricobs.store.tables import TABLES

_PARALLEL_BYTES = 64 << 20
# Fewer are planned before other processes have started.
_PARALLEL_FILES = 4_000
_PLANNED_AT_ONCE = 250
_SHAPES = 10


class Progress(Protocol):
    """Who is told how far an ingest is."""

    def begin(self, files: int, size_bytes: int) -> None:
        """Take note of what will be read."""
        ...

    def done(self, outcome: FileOutcome) -> None:
        """Take note of a file that is done with."""
        ...


class Silence:
    """Nobody is told."""

    def begin(self, files: int, size_bytes: int) -> None:
        """Say nothing."""

    def done(self, outcome: FileOutcome) -> None:
        """Say nothing."""


def ingest(
    inputs: Sequence[Path],
    store: Store,
    options: Options,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> IngestReport:
    """Read every file below `inputs` into the store; StoreError if it cannot be written.

    A file whose rows are there already is left alone; a file that has grown takes the place of
    what it was.
    """
    progress = progress or Silence()
    files = list(discover(inputs, store.path))
    looks = {file.name: seen.look_at(file) for file in files}
    progress.begin(len(files), sum(look[0] for look in looks.values() if look is not None))
    store.create()
    store.settle()
    noted = seen.load(store.path, options)
    catalogue = load_catalogue(options.content)
    known = Known(store.known_files())
    report = IngestReport()
    new: list[InputFile] = []
    for file in files:
        outcome = unchanged(file, catalogue, options, known)
        if outcome is None:
            new.append(file)
        else:
            report.outcomes.append(outcome)
    with _processes(workers if len(new) >= _PARALLEL_FILES else 1) as pool:
        plan = _to_read(_planned(new, catalogue, options, pool), known, report)
        for outcomes in _read_all(batches_of(plan), store, options, workers, pool):
            report.outcomes.extend(outcomes)
            for outcome in outcomes:
                progress.done(outcome)
    store.settle()
    report.outcomes.sort(key=lambda outcome: str(outcome.path))
    for outcome in report.outcomes:
        look = looks.get(str(outcome.path))
        if look is not None and outcome.stored:
            noted[str(outcome.path)] = (*look, " ".join(outcome.formats))
    seen.keep(noted, store.path, options)
    return report


@contextmanager
def _processes(workers: int) -> Iterator[Executor | None]:
    """Lend processes that share nothing; None for a single one, which needs no other."""
    if workers == 1:
        yield None
        return
    # Forking a process that has started threads may hang the child: start clean ones.
    with ProcessPoolExecutor(workers, get_context("spawn"), collect_seldom) as pool:
        yield pool


def _planned(
    files: Sequence[InputFile], catalogue: Catalogue, options: Options, pool: Executor | None
) -> Iterator[PlannedFile | FileOutcome]:
    """Yield what each file is, in order."""
    if pool is None:
        yield from (plan_file(file, catalogue, options) for file in files)
        return
    chunks = [files[at : at + _PLANNED_AT_ONCE] for at in range(0, len(files), _PLANNED_AT_ONCE)]
    for planned in pool.map(plan_files, chunks, repeat(options)):
        yield from planned


def _to_read(
    planned: Iterator[PlannedFile | FileOutcome], known: Known, report: IngestReport
) -> Iterator[PlannedFile]:
    """Yield the files to read; the report gets those that are done with."""
    for each in planned:
        file = beside_known(each, known) if isinstance(each, PlannedFile) else each
        if isinstance(file, FileOutcome):
            report.outcomes.append(file)
        else:
            known.add(file)
            yield file


def _read_all(
    batches: Iterator[list[PlannedFile]],
    store: Store,
    options: Options,
    workers: int,
    pool: Executor | None,
) -> Iterator[list[FileOutcome]]:
    """Read batches while later ones are planned: threads read those of compiled code.

    The others go to processes if there is enough to pay for their start.
    """
    if workers == 1:
        yield from (ingest_batch(batch, store.path, options) for batch in batches)
        return
    by_lines: list[list[PlannedFile]] = []
    with ThreadPoolExecutor(workers) as threads:
        futures: list[Future[list[FileOutcome]]] = []
        for batch in batches:
            if _by_columns(batch):
                futures.append(threads.submit(ingest_batch, batch, store.path, options))
            elif pool is not None:
                futures.append(pool.submit(ingest_batch, batch, store.path, options))
            else:
                by_lines.append(batch)
        pays = len(by_lines) > 1 and sum(map(_size, by_lines)) >= _PARALLEL_BYTES
        with _processes(workers if pays else 1) as started:
            if started is None:
                yield from (ingest_batch(batch, store.path, options) for batch in by_lines)
            else:
                futures += [
                    started.submit(ingest_batch, batch, store.path, options) for batch in by_lines
                ]
            for done in as_completed(futures):
                yield done.result()


def _by_columns(batch: Sequence[PlannedFile]) -> bool:
    """Say whether compiled code does most of a batch, so that threads run side by side."""
    by_columns = [p for p in batch if reads_by_columns(p.recognised, p.size_bytes)]
    return 2 * _size(by_columns) >= _size(batch)


def _size(batch: Sequence[PlannedFile]) -> int:
    return sum(planned.size_bytes for planned in batch)


def ingest_batch(
    batch: Sequence[PlannedFile], store_path: Path, options: Options
) -> list[FileOutcome]:
    """Read the files of one batch and commit their rows together."""
    store = Store(store_path)
    writer = BatchWriter(store)
    spans: dict[str, tuple[Any, Any]] = {}
    rows = Rows(expected_bytes=sum(planned.size_bytes for planned in batch))

    def flush() -> None:
        for table, part in rows.drain():
            _widen(spans, part)
            writer.write(table, part)

    try:
        results: list[tuple[PlannedFile, FileResult]] = []
        refused: list[FileOutcome] = []
        for planned in batch:
            if planned.recognised.syntax == ARCHIVE:
                with store.workplace() as folder:
                    read, failed = _read_archive(planned, folder, options, rows, flush)
                results.extend(read)
                refused.extend(failed)
            else:
                results.append((planned, _read(planned, planned.path, options, rows, flush)))
        flush()
        used = {f.name: f for planned, _ in results for f in planned.recognised.formats}
        for planned, result in results:
            _add_account(rows, planned, result, options, spans)
        for format_ in used.values():
            _add_counter_info(rows, format_)
        flush()
        store.commit(writer, [planned.file_id for planned, _ in results])
    except BaseException:
        writer.discard()
        raise
    return [*(_outcome(planned, result, spans) for planned, result in results), *refused]


def _read_archive(
    archive: PlannedFile, folder: Path, options: Options, rows: Rows, flush: Callable[[], None]
) -> tuple[list[tuple[PlannedFile, FileResult]], list[FileOutcome]]:
    """Read the members of an archive, and account for it as a file of no lines of its own."""
    catalogue = load_catalogue(options.content)
    results: list[tuple[PlannedFile, FileResult]] = []
    refused: list[FileOutcome] = []
    problem = None
    try:
        for member in members(archive.path, folder):
            planned = plan_member(archive, member, catalogue, options)
            if isinstance(planned, FileOutcome):
                refused.append(planned)
            elif planned.file_id not in {known.file_id for known, _ in results}:
                results.append((planned, _read(planned, member.path, options, rows, flush)))
    except SourceError as error:
        problem = str(error)
    if refused:
        problem = problem or f"{len(refused)} of its files could not be read"
    return [*results, (archive, FileResult(Tally(), 0, problem))], refused


def _read(
    planned: PlannedFile, path: Path, options: Options, rows: Rows, flush: Callable[[], None]
) -> FileResult:
    if not planned.recognised.formats:
        return count_lines(path)
    context = Context(planned.file_id, options.job, planned.place, options.tzinfo)
    context.from_path.update(planned.from_path)
    return read_file(path, planned.recognised, context, rows, flush)


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
            "formats": ",".join(planned.recognised.names),
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


def _outcome(
    planned: PlannedFile, result: FileResult, spans: dict[str, tuple[Any, Any]]
) -> FileOutcome:
    tally = result.tally
    samples = tally.samples or tally.unclaimed_samples
    return FileOutcome(
        path=planned.path,
        formats=planned.recognised.names,
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
        size_bytes=planned.size_bytes,
        stored=True,
        span=spans.get(planned.file_id),
        shapes=tuple(tally.shapes.most_common(_SHAPES)),
    )
