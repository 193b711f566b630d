"""Reading the files of one batch and committing their rows together.

A file that cannot be read costs no other file anything: what its reader raises becomes its
`problem`, and the rows read until then are kept. Only a store that cannot be written ends a batch.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from fabricobs import stopping
from fabricobs.accounting import RowFacts, add_account, add_counter_info, outcome_of
from fabricobs.exceptions import UserError
from fabricobs.formats.archive import Member, members
from fabricobs.formats.budget import Allowance
from fabricobs.formats.combined import parts
from fabricobs.formats.context import Context
from fabricobs.formats.decompression import SourceError
from fabricobs.formats.failures import Failure, failure_of
from fabricobs.formats.reading import FileResult, count_lines, read_file, result_of
from fabricobs.formats.recognition.catalogue import Catalogue, load_catalogue
from fabricobs.formats.recognition.format import CONTAINERS
from fabricobs.formats.rows import Rows, Tally
from fabricobs.identities import identities_within
from fabricobs.inputs import FileOutcome, Options, path_text
from fabricobs.planning import PlannedFile, is_as_planned, plan_member
from fabricobs.remote import local_copies
from fabricobs.store.location import shown
from fabricobs.store.log import StoreError
from fabricobs.store.parts import BatchWriter, Store

_MOVED = "was moved or rewritten while it was read: the next ingest reads it"
_NESTED = "combined outputs inside combined outputs: take them apart"


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
    return outcome_of(planned, result, RowFacts())


def note_copies(copies: Sequence[PlannedFile], store_path: Path, options: Options) -> None:
    """Commit the accounts of files whose lines were read in others: none are counted here."""
    _commit_accounts([(copy, FileResult(Tally(), 0)) for copy in copies], store_path, options)


def _commit_accounts(
    results: Sequence[tuple[PlannedFile, FileResult]], store_path: Path, options: Options
) -> None:
    rows = Rows()
    for planned, result in results:
        add_account(rows, planned, result, options, RowFacts())
    with _storing(store_path), BatchWriter(Store(store_path)) as writer:
        for table, part in rows.drain():
            writer.write(table, part)
        Store(store_path).commit(writer, [planned.file_id for planned, _ in results])


@dataclass(slots=True)
class _ReadFiles:
    """What became of the files of a batch: read, refused, or changed since they were planned."""

    results: list[tuple[PlannedFile, FileResult]] = field(default_factory=list)
    refused: list[FileOutcome] = field(default_factory=list)
    moved: list[PlannedFile] = field(default_factory=list)

    def add(self, other: "_ReadFiles") -> None:
        """Add the files within a container."""
        self.results.extend(other.results)
        self.refused.extend(other.refused)


def _read_and_commit(
    batch: Sequence[PlannedFile], store_path: Path, options: Options
) -> list[FileOutcome]:
    store = Store(store_path)
    writer = BatchWriter(store)
    facts = RowFacts()
    rows = Rows(expected_bytes=sum(planned.size_bytes for planned in batch))

    def flush() -> None:
        for table, part in rows.drain():
            facts.add(table, part)
            # Readers call this, and would take an OSError for one of their file.
            with _storing(store_path):
                writer.write(table, part)

    try:
        read = _read_batch(batch, store, options, rows, flush)
        if read.moved:
            writer.discard()
            left = [planned for planned in batch if planned not in read.moved]
            moved = [FileOutcome(planned.path, problem=_MOVED) for planned in read.moved]
            return [*(_read_and_commit(left, store_path, options) if left else ()), *moved]
        flush()
        results = [(file, facts.completed(file, result, rows)) for file, result in read.results]
        for planned, result in results:
            add_account(rows, planned, result, options, facts)
        used = {f.name: f for planned, _ in results for f in planned.recognised.formats}
        for format_ in used.values():
            add_counter_info(rows, format_)
        flush()
        store.commit(writer, [planned.file_id for planned, _ in results])
    except BaseException:
        writer.discard()
        raise
    return [*(outcome_of(planned, result, facts) for planned, result in results), *read.refused]


def _read_batch(
    batch: Sequence[PlannedFile],
    store: Store,
    options: Options,
    rows: Rows,
    flush: Callable[[], None],
) -> _ReadFiles:
    read = _ReadFiles()
    sizes = [(planned.path, planned.size_bytes) for planned in batch]
    kept = [planned.kept for planned in batch]
    # Few batches hold a container: the formats are loaded with the first one.
    catalogue = cache(partial(load_catalogue, options.content))
    with closing(local_copies(sizes, kept)) as copies:
        for planned, copy in zip(batch, copies, strict=True):
            stopping.check()
            try:
                path = copy()
            except SourceError:
                read.moved.append(planned)
                continue
            if planned.recognised.syntax in CONTAINERS:
                with store.workplace() as folder:
                    inside = _read_members(planned, path, folder, catalogue(), options, rows, flush)
            else:
                inside = _ReadFiles([(planned, _read_one(planned, path, options, rows, flush))])
            if is_as_planned(planned, path):
                read.add(inside)
            else:
                read.moved.append(planned)
    return read


def _read_members(
    container: PlannedFile,
    path: Path,
    folder: Path,
    catalogue: Catalogue,
    options: Options,
    rows: Rows,
    flush: Callable[[], None],
) -> _ReadFiles:
    """Read the members of an archive, or the parts of a combined text, which lies at `path`.

    The container is accounted for as a file of no lines of its own.
    """
    read = _ReadFiles()
    seen: set[str] = set()
    failure = None
    within = folder / "parts"
    within.mkdir(exist_ok=True)
    try:
        allowance = Allowance(path)
        given = partial(_members, container, path, folder, options)
        identities = identities_within(
            given, container.path, container.identity, catalogue, options, allowance
        )
        for member in given(lambda name: True):
            allowance.next_member()
            planned = plan_member(container, member, identities.of(member.name), catalogue, options)
            if isinstance(planned, FileOutcome):
                read.refused.append(planned)
            elif planned.file_id not in seen:
                seen.add(planned.file_id)
                if planned.recognised.combination is not None:
                    if container.recognised.combination is not None:
                        read.refused.append(FileOutcome(planned.path, problem=_NESTED))
                        continue
                    read.add(
                        _read_members(planned, member.path, within, catalogue, options, rows, flush)
                    )
                    continue
                result = _read_one(planned, member.path, options, rows, flush)
                if member.modified_us is None:
                    result = result.with_note("the archive's time of this file is none: left out")
                read.results.append((planned, result))
    except UserError:
        raise
    except Exception as error:
        failure = failure_of(error)
    if read.refused and failure is None:
        failure = Failure(f"{len(read.refused)} of its files could not be read")
    read.results.append((container, result_of(Tally(), 0, failure)))
    return read


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


def _read_one(
    planned: PlannedFile, path: Path, options: Options, rows: Rows, flush: Callable[[], None]
) -> FileResult:
    if not planned.recognised.formats:
        return count_lines(path)
    context = Context(planned.file_id, options.job, planned.identity, options.tzinfo)
    context.modified_us = planned.modified_us
    context.file_name = path_text(planned.path)
    context.from_path.update(planned.from_path)
    return read_file(path, planned.recognised, context, rows, flush)
