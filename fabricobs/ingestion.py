"""Ingest: discover -> recognise -> read -> write, on any executor.

Files are planned into batches; a batch is read and committed by one worker that shares nothing
with the others, so threads, processes or machines may run them.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from fabricobs import stopping, unchanged
from fabricobs.batches import ingest_batch, note_copies
from fabricobs.formats.identity import Identity
from fabricobs.formats.identity.pattern import unfit
from fabricobs.formats.reading import reads_by_columns
from fabricobs.formats.recognition.catalogue import Catalogue, load_catalogue
from fabricobs.host_maps import MAP_TABLE
from fabricobs.identities import Identities
from fabricobs.inputs import (
    FileOutcome,
    Found,
    IngestReport,
    InputFile,
    Options,
    check_apart,
    find,
    path_text,
)
from fabricobs.planning import (
    Known,
    PlannedFile,
    batches_of,
    beside_known,
    plan_files,
    plan_files_apart,
    stored_outcome,
)
from fabricobs.remote import Shelf, shelf
from fabricobs.store.parts import Store
from fabricobs.workers import KILLED, Lend, one_by_one, processes, submitted

_PARALLEL_BYTES = 64 << 20
# Fewer are planned before other processes have started.
_PARALLEL_FILES = 4_000
_PLANNED_AT_ONCE = 250
_CHUNKS_AHEAD = 16
_Given = list[tuple[InputFile, Identity]]


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
    cluster: Executor | None = None,
    progress: Progress | None = None,
    found: Found | None = None,
) -> IngestReport:
    """Read every file below `inputs` into the store; StoreError if it cannot be written.

    `workers` processes of this machine read, or those of a `cluster`; `found` is what lies below
    the inputs, if that is known.

    A file whose rows are there already is left alone; a file that has grown takes the place of
    what it was.
    """
    check_apart(inputs, store.path)
    progress = progress or Silence()
    found = found or find(inputs, store.path, follow=options.follow)
    files = found.files
    looks = {file.name: unchanged.look_at(file) for file in files}
    progress.begin(len(files), sum(int(look[0]) for look in looks.values() if look))
    store.create()
    store.settle()
    noted = unchanged.load(store.path, options)
    catalogue = load_catalogue(options.content)
    known = Known(store.known_files(), files)
    report = IngestReport(left_out=found.left_out)
    identities = Identities(files, options, _no_maps(files, looks, noted, catalogue))
    options = replace(options, aliases=tuple(identities.aliases.items()))
    new: list[tuple[InputFile, Identity]] = []
    for file in files:
        stopping.check()
        told = identities.of(file)
        same = str(file.path) in noted
        outcomes = stored_outcome(file, told, catalogue, options, known, same_definitions=same)
        if outcomes is None and path_text(file.name) not in known.by_path:
            # The store knows it by the name it had before it was rotated.
            outcomes = unchanged.as_noted(file, looks[file.name], noted)
        if outcomes is None:
            new.append((file, told))
        else:
            report.outcomes.extend(outcomes)
    read = partial(ingest_batch, store_path=store.path, options=options)
    planners = workers if len(new) >= _PARALLEL_FILES else 1
    # Workers of a cluster may be other machines: what one of them copies, another cannot read.
    objects = [each.path for each, _ in new if each.listed is not None and cluster is None]
    with (
        shelf(objects, planners) as kept,
        nullcontext(cluster) if cluster is not None else _processes(planners) as pool,
    ):
        copies: list[PlannedFile] = []
        planned = _planned(new, catalogue, options, pool, _again(cluster), kept)
        compared = _compared(planned, known, catalogue, options)
        plan = _to_read(compared, known, report, copies)
        for outcomes in _read_all(batches_of(plan), read, workers, pool, cluster):
            report.outcomes.extend(outcomes)
            for outcome in outcomes:
                progress.done(outcome)
    report.outcomes.extend(_note_copies(copies, known, report, store, options))
    store.settle()
    paths = list(_paths(files, report.outcomes)) if options.host_from else []
    report.unfit_patterns = tuple(unfit(options.host_from, paths))
    report.a_path = next(iter(paths), "")
    report.outcomes.sort(key=lambda outcome: str(outcome.path))
    unchanged.keep(_updated_notes(noted, looks, report), store.path, options)
    return report


def _updated_notes(
    noted: unchanged.Notes, looks: Mapping[str, unchanged.Look | None], report: IngestReport
) -> unchanged.Notes:
    """Return the notes with those of the files of this ingest."""
    notes = dict(noted)
    # A file with a problem, or a member with one, is looked up in the store at every ingest.
    troubled = {str(p) for o in report.problems for p in (o.path, *o.path.parents)}
    for outcome in report.outcomes:
        path = str(outcome.path)
        look = looks.get(path)
        if path in troubled:
            notes.pop(path, None)
        elif look is not None and outcome.stored:
            notes[path] = (*look, " ".join(outcome.formats))
    return notes


def _no_maps(
    files: Sequence[InputFile],
    looks: Mapping[str, unchanged.Look | None],
    noted: unchanged.Notes,
    catalogue: Catalogue,
) -> set[str]:
    """Return the files that are unchanged and were no host map."""
    same = [unchanged.as_noted(file, looks[file.name], noted) for file in files]
    outcomes = [each[0] for each in same if each is not None]
    maps = {
        names
        for names in {outcome.formats for outcome in outcomes}
        if any(MAP_TABLE in each.definition.tables for each in catalogue.named(names) or ())
    }
    return {str(each.path) for each in outcomes if each.formats not in maps}


def _paths(files: Sequence[InputFile], outcomes: Sequence[FileOutcome]) -> Iterator[str]:
    """Yield the paths that patterns are matched with: below the input, or within an archive."""
    given = {file.path for file in files}
    yield from (path_text(file.below_root) for file in files)
    for outcome in outcomes:
        for folder in outcome.path.parents:
            if folder in given:
                yield path_text(outcome.path.relative_to(folder))


def _processes(workers: int) -> AbstractContextManager[Executor | None]:
    """Lend processes that share nothing; None for a single one, which needs no other."""
    return nullcontext() if workers == 1 else processes(workers)


def _planned(
    files: Sequence[tuple[InputFile, Identity]],
    catalogue: Catalogue,
    options: Options,
    pool: Executor | None,
    again: Lend,
    kept: Shelf | None,
) -> Iterator[PlannedFile | FileOutcome]:
    """Yield what each file is, in order."""
    if pool is None:
        yield from plan_files(files, catalogue, options, kept)
        return
    chunks = deque(
        list(files[at : at + _PLANNED_AT_ONCE]) for at in range(0, len(files), _PLANNED_AT_ONCE)
    )
    plan = partial(plan_files_apart, options=options, shelf=kept)
    begun: deque[tuple[Future[list[PlannedFile | FileOutcome]], _Given]] = deque()
    while chunks or begun:
        # Not all at once: batches are read between them, and what planning keeps goes with those.
        while chunks and len(begun) < _CHUNKS_AHEAD:
            chunk = chunks.popleft()
            begun.append((submitted(pool, plan, chunk), chunk))
        future, chunk = begun.popleft()
        try:
            yield from future.result()
        except BrokenProcessPool:
            for planned in one_by_one(plan, [chunk], _killed, again):
                yield from planned


def _killed(given: tuple[InputFile, Identity]) -> list[PlannedFile | FileOutcome]:
    return [FileOutcome(given[0].path, problem=KILLED)]


def _compared(
    planned: Iterator[PlannedFile | FileOutcome],
    known: Known,
    catalogue: Catalogue,
    options: Options,
) -> Iterator[PlannedFile | FileOutcome]:
    """Yield what each file is to those already known; the copy of one not to be read is let go."""
    for file in planned:
        if isinstance(file, FileOutcome):
            yield file
            continue
        found = beside_known(file, known, catalogue, options)
        is_read = isinstance(found, PlannedFile) and found.repeats is None
        if file.kept is not None and not is_read:
            file.kept.unlink(missing_ok=True)
        yield found


def _to_read(
    planned: Iterator[PlannedFile | FileOutcome],
    known: Known,
    report: IngestReport,
    copies: list[PlannedFile],
) -> Iterator[PlannedFile]:
    """Yield the files to read; the report gets those that are done with, `copies` the copies."""
    for file in planned:
        if isinstance(file, FileOutcome):
            report.outcomes.append(file)
        elif file.repeats is not None:
            copies.append(file)
        else:
            known.add(file)
            yield file


def _note_copies(
    copies: Sequence[PlannedFile],
    known: Known,
    report: IngestReport,
    store: Store,
    options: Options,
) -> list[FileOutcome]:
    """Keep the accounts of copies whose lines are in the store; look at the others next time."""
    held = [c for c in copies if c.repeats and known.holds(c.repeats, report.outcomes)]
    if held:
        note_copies(held, store.path, options)
    noted = {planned.file_id for planned in held}
    return [
        FileOutcome(
            c.path, c.recognised.names, unchanged=True, is_copy=True, stored=c.file_id in noted
        )
        for c in copies
    ]


def _read_all(
    batches: Iterator[list[PlannedFile]],
    read: Callable[[list[PlannedFile]], list[FileOutcome]],
    workers: int,
    pool: Executor | None,
    cluster: Executor | None,
) -> Iterator[list[FileOutcome]]:
    """Read batches while later ones are planned.

    A cluster reads all. On this machine threads read those of compiled code; the others go to
    processes if there is enough to pay for their start. What a process did that was killed is done
    again.
    """
    futures: dict[Future[list[FileOutcome]], list[PlannedFile]] = {}
    if cluster is not None:
        futures = {submitted(cluster, read, batch): batch for batch in batches}
        yield from _results(futures, read, _again(cluster))
        return
    if workers == 1:
        yield from map(read, batches)
        return
    by_lines: list[list[PlannedFile]] = []
    with ThreadPoolExecutor(workers) as threads:
        for batch in batches:
            if _by_columns(batch):
                futures[threads.submit(read, batch)] = batch
            elif pool is not None:
                futures[submitted(pool, read, batch)] = batch
            else:
                by_lines.append(batch)
        pays = len(by_lines) > 1 and sum(map(_size, by_lines)) >= _PARALLEL_BYTES
        with _processes(workers if pays else 1) as started:
            if started is None:
                yield from map(read, by_lines)
            else:
                futures |= {submitted(started, read, batch): batch for batch in by_lines}
            yield from _results(futures, read, _again(cluster))


def _results(
    futures: Mapping[Future[list[FileOutcome]], list[PlannedFile]],
    read: Callable[[list[PlannedFile]], list[FileOutcome]],
    again: Lend,
) -> Iterator[list[FileOutcome]]:
    """Yield what was read, as it is done; batches whose process was killed last."""
    lost = []
    for done in as_completed(futures):
        try:
            yield done.result()
        except BrokenProcessPool:
            lost.append(futures[done])
    yield from one_by_one(read, lost, _killed_reading, again)


def _again(cluster: Executor | None) -> Lend:
    """Return what lends workers to a batch whose process was killed: one of its own at home."""
    return (lambda: processes(1)) if cluster is None else (lambda: nullcontext(cluster))


def _killed_reading(planned: PlannedFile) -> list[FileOutcome]:
    """Return what becomes of a file that has its reader killed: the next ingest tries it again."""
    return [
        FileOutcome(
            planned.path,
            planned.recognised.names,
            problem=KILLED,
            size_bytes=planned.size_bytes,
        )
    ]


def _by_columns(batch: Sequence[PlannedFile]) -> bool:
    """Say whether compiled code does most of a batch, so that threads run side by side."""
    by_columns = [p for p in batch if reads_by_columns(p.recognised, p.size_bytes)]
    return 2 * _size(by_columns) >= _size(batch)


def _size(batch: Sequence[PlannedFile]) -> int:
    return sum(planned.size_bytes for planned in batch)
