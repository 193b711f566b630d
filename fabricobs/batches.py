"""Reading the files of one batch and committing their rows together.

A file that cannot be read costs no other file anything: what its reader raises becomes its
`problem`, and the rows read until then are kept. Only a store that cannot be written ends a batch.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fabricobs import stopping
from fabricobs.exceptions import UserError
from fabricobs.formats.archive import Member, members
from fabricobs.formats.budget import Allowance
from fabricobs.formats.combined import parts
from fabricobs.formats.context import Context
from fabricobs.formats.decompression import SourceError
from fabricobs.formats.failures import Failure, failure_of
from fabricobs.formats.identity import UNKNOWN
from fabricobs.formats.reading import FileResult, count_lines, read_file, result_of
from fabricobs.formats.recognition.catalogue import CONTAINERS, Format, load_catalogue
from fabricobs.formats.rows import Rows, Tally
from fabricobs.identities import identities_within
from fabricobs.inputs import FileOutcome, Options, not_kept, path_text
from fabricobs.planning import PlannedFile, is_as_planned, plan_member
from fabricobs.remote import local_copies
from fabricobs.store.location import shown
from fabricobs.store.log import StoreError
from fabricobs.store.parts import BatchWriter, Store
from fabricobs.store.tables import TABLES

_SHAPES = 10
# What tells how long a step took: itself, a clock of the training, or when it began and was logged.
_STEP_TIMES = ("step_time_ms", "elapsed_ms", "started", "ts")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOVED = "was moved or rewritten while it was read: the next ingest reads it"

_NESTED = "combined outputs inside combined outputs: take them apart"

# By file id: the first and last time of its rows.
Spans = dict[str, tuple[Any, Any]]


def ingest_batch(
    batch: Sequence[PlannedFile], store_path: Path, options: Options
) -> list[FileOutcome]:
    """Read the files of one batch and commit their rows; StoreError if the store cannot be written.

    An error that no single file's reader raised is looked for in the halves of the batch: the one
    file it is due to is refused.
    """
    try:
        with _storing(store_path):
            return _read_and_commit(batch, store_path, options)
    except UserError:
        raise
    except Exception as error:
        if len(batch) == 1:
            return [refuse(batch[0], store_path, options, failure_of(error))]
    half = len(batch) // 2
    return [
        *ingest_batch(batch[:half], store_path, options),
        *ingest_batch(batch[half:], store_path, options),
    ]


@contextmanager
def _storing(store_path: Path) -> Iterator[None]:
    """Turn an OSError into a StoreError: the disk of the store is no problem of a file."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"store {shown(store_path)}: {error.strerror or error}") from error


def refuse(
    planned: PlannedFile, store_path: Path, options: Options, failure: Failure
) -> FileOutcome:
    """Commit the account of a file of which nothing is kept."""
    result = result_of(Tally(), 0, failure)
    _commit_accounts([(planned, result)], store_path, options)
    return _outcome(planned, result, {}, frozenset())


def note_copies(copies: Sequence[PlannedFile], store_path: Path, options: Options) -> None:
    """Commit the accounts of files whose lines were read in others: none are counted here."""
    _commit_accounts([(copy, FileResult(Tally(), 0)) for copy in copies], store_path, options)


def _commit_accounts(
    results: Sequence[tuple[PlannedFile, FileResult]], store_path: Path, options: Options
) -> None:
    rows = Rows()
    for planned, result in results:
        _add_account(rows, planned, result, options, {})
    with _storing(store_path), BatchWriter(Store(store_path)) as writer:
        for table, part in rows.drain():
            writer.write(table, part)
        Store(store_path).commit(writer, [planned.file_id for planned, _ in results])


def _read_and_commit(
    batch: Sequence[PlannedFile], store_path: Path, options: Options
) -> list[FileOutcome]:
    store = Store(store_path)
    writer = BatchWriter(store)
    spans: Spans = {}
    unknown: set[str] = set()
    untimed: Counter[str] = Counter()
    rows = Rows(expected_bytes=sum(planned.size_bytes for planned in batch))

    def flush() -> None:
        for table, part in rows.drain():
            _widen(spans, part)
            if table == "steps":
                untimed.update(_untimed_steps(part))
            if table != "files":  # they may have an identity that no row needed
                unknown.update(_unknown_names(part))
            # Readers call this, and would take an OSError for one of their file.
            with _storing(store_path):
                writer.write(table, part)

    try:
        results: list[tuple[PlannedFile, FileResult]] = []
        refused: list[FileOutcome] = []
        moved: list[PlannedFile] = []
        sizes = [(planned.path, planned.size_bytes) for planned in batch]
        kept = [planned.kept for planned in batch]
        with closing(local_copies(sizes, kept)) as copies:
            for planned, here in zip(batch, copies, strict=True):
                stopping.check()
                try:
                    path = here()
                except SourceError:
                    moved.append(planned)
                    continue
                if planned.recognised.syntax in CONTAINERS:
                    with store.workplace() as folder:
                        read, failed = _read_members(planned, path, folder, options, rows, flush)
                else:
                    read, failed = [(planned, _read(planned, path, options, rows, flush))], []
                if is_as_planned(planned, path):
                    results.extend(read)
                    refused.extend(failed)
                else:
                    moved.append(planned)
        if moved:
            writer.discard()
            left = [planned for planned in batch if planned not in moved]
            told = [FileOutcome(planned.path, problem=_MOVED) for planned in moved]
            return [*(_read_and_commit(left, store_path, options) if left else ()), *told]
        flush()
        for planned, result in results:
            _note_unknown_port(planned, result, unknown)
        results = [
            (
                p,
                replace(
                    r.with_note(rows.unfit.of_file(p.file_id)), untimed_steps=untimed[p.file_id]
                ),
            )
            for p, r in results
        ]
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
    return [*(_outcome(planned, result, spans, unknown) for planned, result in results), *refused]


def _read_members(
    container: PlannedFile,
    path: Path,
    folder: Path,
    options: Options,
    rows: Rows,
    flush: Callable[[], None],
) -> tuple[list[tuple[PlannedFile, FileResult]], list[FileOutcome]]:
    """Read the members of an archive, or the parts of a combined text, which lies at `path`.

    The container is accounted for as a file of no lines of its own.
    """
    catalogue = load_catalogue(options.content)
    results: list[tuple[PlannedFile, FileResult]] = []
    refused: list[FileOutcome] = []
    read: set[str] = set()
    failure = None
    within = folder / "parts"
    within.mkdir(exist_ok=True)
    try:
        allowance = Allowance(path)
        given = partial(_members, container, path, folder, options)
        identities = identities_within(
            given, container.path, container.identity, options, allowance
        )
        for member in given(lambda name: True):
            allowance.next_member()
            planned = plan_member(container, member, identities.of(member.name), catalogue, options)
            if isinstance(planned, FileOutcome):
                refused.append(planned)
            elif planned.file_id not in read:
                read.add(planned.file_id)
                if planned.recognised.combination is not None:
                    if container.recognised.combination is not None:
                        refused.append(FileOutcome(planned.path, problem=_NESTED))
                        continue
                    inner = _read_members(planned, member.path, within, options, rows, flush)
                    results.extend(inner[0])
                    refused.extend(inner[1])
                    continue
                result = _read(planned, member.path, options, rows, flush)
                if member.modified_us is None:
                    result = result.with_note("the archive's time of this file is none: left out")
                results.append((planned, result))
    except UserError:
        raise
    except Exception as error:
        failure = failure_of(error)
    if refused and failure is None:
        failure = Failure(f"{len(refused)} of its files could not be read")
    return [*results, (container, result_of(Tally(), 0, failure))], refused


def _members(
    container: PlannedFile,
    path: Path,
    folder: Path,
    options: Options,
    unpacks: Callable[[str], bool],
) -> Iterator[Member]:
    combination = container.recognised.combination
    if combination is not None:
        return parts(path, combination, folder, container.modified_us)
    return members(path, folder, options.tzinfo, unpacks=unpacks)


def _read(
    planned: PlannedFile, path: Path, options: Options, rows: Rows, flush: Callable[[], None]
) -> FileResult:
    if not planned.recognised.formats:
        return count_lines(path)
    context = Context(planned.file_id, options.job, planned.identity, options.tzinfo)
    context.modified_us = planned.modified_us
    context.file_name = path_text(planned.path)
    context.from_path.update(planned.from_path)
    return read_file(path, planned.recognised, context, rows, flush)


def _widen(spans: Spans, part: pa.Table) -> None:
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


def _unknown_names(part: pa.Table) -> Iterator[str]:
    """Yield the devices and ports of some rows that nothing names."""
    for column in ("device", "host", "port"):
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


def _note_unknown_port(planned: PlannedFile, result: FileResult, unknown: Set[str]) -> None:
    """Make it the problem of a file that its counters belong to no port that anything names."""
    if result.problem is None and f"{UNKNOWN}{path_text(planned.path)}" in unknown:
        result.problem = (
            "its counters name no port: put the interface into the file's name, as "
            "ethtool_eth0.txt, or say where it stands with --host-from '{host}/{port}.txt'"
        )


def _add_account(
    rows: Rows,
    planned: PlannedFile,
    result: FileResult,
    options: Options,
    spans: Spans,
) -> None:
    tally = result.tally
    first, last = spans.get(planned.file_id, (None, None))
    rows.add(
        "files",
        {
            "file_id": planned.file_id,
            "job": options.job,
            "path": path_text(planned.path),
            "size_bytes": planned.size_bytes,
            "modified": planned.modified_us,
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
    planned: PlannedFile, result: FileResult, spans: Spans, unknown: Set[str]
) -> FileOutcome:
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
        span=spans.get(planned.file_id),
        shapes=tuple(tally.shapes.most_common(_SHAPES)),
        untimed_steps=result.untimed_steps,
        unknown_device=planned.identity.device if planned.identity.device in unknown else None,
        doubt=planned.identity.doubt,
        timed_by_change=_is_timed_by_change(planned, spans),
    )


def _is_timed_by_change(planned: PlannedFile, spans: Spans) -> bool:
    """Say whether rows of a file have the time of its last change."""
    identity, span = planned.identity, spans.get(planned.file_id, ())
    return identity.ts_source == "mtime" and identity.ts in [_microseconds(time) for time in span]


def _microseconds(time: datetime) -> int:
    return (time.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
