"""Ingest: discover -> recognise -> read -> write, on any executor.

Files are planned into batches; a batch is read and committed by one worker that shares nothing
with the others, so threads, processes or machines may run them.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import cache
from multiprocessing import get_context
from pathlib import Path, PurePath
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from fabricobs.formats.catalogue import Catalogue, Format, Recognised, load_catalogue
from fabricobs.formats.context import Context
from fabricobs.formats.keyvalue import KeyValueFormat
from fabricobs.formats.places import Place, read_place
from fabricobs.formats.reading import FileResult, count_lines, read_file
from fabricobs.formats.rows import Rows
from fabricobs.formats.ruled import TableFormat
from fabricobs.formats.source import SourceError, digest, read_ends
from fabricobs.store.parts import BatchWriter, KnownFile, Store
from fabricobs.store.tables import TABLES

_BATCH_BYTES = 64 << 20
_BATCH_FILES = 1_000
_PARALLEL_BYTES = 64 << 20
_MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says about the input: job name, time zone of bare times, own content."""

    job: str | None = None
    zone: str = "UTC"
    content: tuple[Path, ...] = ()

    @property
    def tzinfo(self) -> tzinfo:
        """Return the zone of times that name none."""
        return UTC if self.zone == "UTC" else ZoneInfo(self.zone)


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file to be read, with everything that decides its rows."""

    path: Path
    file_id: str
    content: str
    settings: str
    size_bytes: int
    modified_us: int
    place: Place
    from_path: dict[str, Any]
    recognised: Recognised
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one file of the input."""

    path: Path
    formats: tuple[str, ...] = ()
    lines: int = 0
    parsed: int = 0
    ignored: int = 0
    unparsed: int = 0
    unclaimed: int = 0
    rows: int = 0
    unchanged: bool = False
    problem: str | None = None
    unrecognised: str | None = None
    unused: tuple[str, ...] = ()
    first_unread: tuple[int, str, str] | None = None


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
    known = _Known(store.known_files())
    plan: list[PlannedFile] = []
    for path, below_root, root_name in discover(inputs, store.path):
        planned = _plan(path, below_root, root_name, catalogue, options, known)
        if isinstance(planned, FileOutcome):
            report.outcomes.append(planned)
            progress(planned)
        else:
            plan.append(planned)
            known.add(planned)
    batches = list(_batches(plan))
    total = sum(planned.size_bytes for planned in plan)
    parallel = workers > 1 and len(batches) > 1 and total >= _PARALLEL_BYTES
    run = _in_processes if parallel else _here
    for outcomes in run(batches, store, options, workers):
        report.outcomes.extend(outcomes)
        for outcome in outcomes:
            progress(outcome)
    store.settle()
    report.outcomes.sort(key=lambda outcome: str(outcome.path))
    return report


def discover(inputs: Sequence[Path], store: Path) -> Iterator[tuple[Path, PurePath, str]]:
    """Yield each file with its path below the directory given and that directory's name."""
    for given in inputs:
        root = Path(os.path.abspath(given))  # noqa: PTH100 (no symlink is followed)
        if not root.is_dir():
            yield root, PurePath(root.name), root.parent.name
            continue
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith(".") and Path(folder, name) != store.absolute()
            )
            for name in sorted(names):
                if not name.startswith("."):
                    path = Path(folder, name)
                    yield path, PurePath(path.relative_to(root)), root.name


class _Known:
    """What the store holds, looked up by path and by file id."""

    def __init__(self, files: Iterable[KnownFile]) -> None:
        self.by_path: dict[str, KnownFile] = {}
        self.ids: set[str] = set()
        for file in files:
            self.by_path[file.path] = file
            self.ids.add(file.file_id)

    def add(self, planned: PlannedFile) -> None:
        self.ids.add(planned.file_id)


def _plan(
    path: Path,
    below_root: PurePath,
    root_name: str,
    catalogue: Catalogue,
    options: Options,
    known: _Known,
) -> PlannedFile | FileOutcome:
    """Decide what a file is; an outcome at once if it is unreadable or already in the store."""
    try:
        stat = path.stat()
        if not path.is_file():
            return FileOutcome(path, problem="is no regular file")
        before = known.by_path.get(str(path))
        modified_us = stat.st_mtime_ns // 1000
        if before is not None and _untouched(before, stat.st_size, modified_us, catalogue, options):
            return FileOutcome(path, tuple(filter(None, before.formats.split(","))), unchanged=True)
        recognised = catalogue.recognise(read_ends(path), str(path))
        content = digest(path)
    except OSError as error:
        return FileOutcome(path, problem=f"cannot be read: {error.strerror or error}")
    except SourceError as error:
        return FileOutcome(path, problem=str(error))
    place = _place(read_place(below_root, root_name, options.tzinfo), recognised, modified_us)
    settings = _settings(catalogue, recognised.formats, options)
    from_path: dict[str, Any] = {}
    for format_ in recognised.formats:
        from_path.update(format_.fields_of_path(str(path)) or {})
    identity = json.dumps([content, settings, place.device, place.ts, from_path], default=str)
    planned = PlannedFile(
        path=path,
        file_id=hashlib.blake2b(identity.encode(), digest_size=12).hexdigest(),
        content=content,
        settings=settings,
        size_bytes=stat.st_size,
        modified_us=modified_us,
        place=place,
        from_path=from_path,
        recognised=recognised,
    )
    if planned.file_id in known.ids:
        names = tuple(f.name for f in recognised.formats)
        return FileOutcome(path, names, unchanged=True)
    if before is not None and _succeeds(planned, before):
        return replace(planned, replaces=before.file_id)
    return planned


def _untouched(
    before: KnownFile, size: int, modified_us: int, catalogue: Catalogue, options: Options
) -> bool:
    names = [name for name in before.formats.split(",") if name]
    if any(name not in catalogue.formats for name in names):
        return False
    formats = [catalogue.formats[name] for name in names]
    return (
        before.size_bytes == size
        and int(before.modified.replace(tzinfo=UTC).timestamp() * 1_000_000 + 0.5) == modified_us
        and before.settings == _settings(catalogue, formats, options)
    )


def _succeeds(planned: PlannedFile, before: KnownFile) -> bool:
    """Say whether a file is what another one became: more lines, or read with newer formats."""
    if planned.content == before.content:
        return True
    return (
        planned.size_bytes > before.size_bytes
        and digest(planned.path, before.size_bytes) == before.content
    )


def _settings(catalogue: Catalogue, formats: Sequence[Format], options: Options) -> str:
    return catalogue.settings(formats, {"job": options.job, "zone": options.zone})


def _place(place: Place, recognised: Recognised, modified_us: int) -> Place:
    """Fall back on the modification time for snapshots; a log's lines have their own times."""
    kinds = [f.compiled for f in recognised.formats]
    if place.ts is not None or not any(
        isinstance(kind, TableFormat | KeyValueFormat) for kind in kinds
    ):
        return place
    one_value = any(isinstance(kind, KeyValueFormat) and kind.one_value for kind in kinds)
    # The files of one sysfs copy are written within seconds: they are one sample.
    ts = modified_us - modified_us % _MINUTE_US if one_value else modified_us
    return Place(place.device, ts, "mtime")


def _batches(plan: Sequence[PlannedFile]) -> Iterator[list[PlannedFile]]:
    """Group files in path order into batches of bounded size."""
    batch: list[PlannedFile] = []
    size = 0
    for planned in plan:
        if batch and (size + planned.size_bytes > _BATCH_BYTES or len(batch) >= _BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(planned)
        size += planned.size_bytes
    if batch:
        yield batch


def _here(
    batches: Sequence[list[PlannedFile]], store: Store, options: Options, workers: int
) -> Iterator[list[FileOutcome]]:
    for batch in batches:
        yield ingest_batch(batch, store.path, options)


def _in_processes(
    batches: Sequence[list[PlannedFile]], store: Store, options: Options, workers: int
) -> Iterator[list[FileOutcome]]:
    # Forking a process that has started threads may hang the child: start clean ones.
    pool: Executor
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(ingest_batch, batch, store.path, options) for batch in batches]
        for future in as_completed(futures):
            yield future.result()


@cache
def _catalogue(content: tuple[Path, ...]) -> Catalogue:
    return load_catalogue(content)


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
    grouped = part.group_by("file_id").aggregate([("ts", "min"), ("ts", "max")])
    for row in grouped.to_pylist():
        times = [row["ts_min"], row["ts_max"], *spans.get(row["file_id"], (None, None))]
        given = [time for time in times if time is not None]
        if given:
            spans[row["file_id"]] = (min(given), max(given))


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
