"""What a watch remembers between rounds: incidents, and what is to be told; in `STORE/.watch/`.

It lies in the store, in an object store too: a watch may go on on another machine.

The memory is written before anything is sent, and again after each thing sent. A kill in between
leads to the same event sent twice under the same key, never to one that nobody is told of.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fabricobs.diagnosis.incidents import Event, Incident
from fabricobs.operate.lease import Lease, WatchError
from fabricobs.report.history import open_incidents
from fabricobs.store.durable import open_own, own_folder
from fabricobs.store.location import shown
from fabricobs.store.reading import reading
from fabricobs.store.storage import Directory, storage_of

_VERSION = 1
_STATE = ".watch/state.json"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Memory:
    """Incidents, open ones and those closed lately; events not delivered yet, by target.

    `newest` is the newest time of the data, `advanced` when (our time) it last moved on,
    `round_seconds` how long the last round took. Times are UTC without a zone.
    """

    incidents: tuple[Incident, ...] = ()
    pending: dict[str, tuple[Event, ...]] = field(default_factory=dict)
    newest: datetime | None = None
    advanced: datetime | None = None
    round_seconds: float = 0.0
    version: int = _VERSION


_AS_JSON = TypeAdapter(Memory)


def load_memory(store: Path, say: Say) -> Memory:
    """Return what the last round left; an empty memory before the first one.

    A damaged one is put aside and made again of the events kept in the store.
    """
    path = f"{shown(store)}/{_STATE}"
    try:
        data = storage_of(store).read(_STATE)
        memory = _AS_JSON.validate_json(data)
    except FileNotFoundError:
        return Memory()
    except ValidationError:
        return _rebuilt(store, path, data, say)
    if memory.version != _VERSION:
        raise WatchError(f"{path}: written by another release of fabricobs; move it away")
    return memory


def _rebuilt(store: Path, path: str, data: bytes, say: Say) -> Memory:
    """Put a damaged memory aside, and keep and return what the store tells of it."""
    with reading(store):
        memory = Memory(open_incidents(store))
    aside = f"{_STATE}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    storage_of(store).replace(aside, data)
    save_memory(memory, store)
    say(
        f"{path}: damaged, put aside as {aside.rpartition('/')[2]}. {len(memory.incidents)} open "
        "incidents are known from the findings in the store and are not told again. Events that a "
        "target had not taken are lost; an incident not in the findings yet is told again"
    )
    return memory


def save_memory(memory: Memory, store: Path) -> None:
    """Write the memory, all of it or nothing; OSError if there is no room for it."""
    storage_of(store).replace(_STATE, _AS_JSON.dump_json(memory, indent=1))


@contextmanager
def only_watch(store: Path, say: Say = lambda _: None) -> Iterator[Callable[[], None]]:
    """Hold the store for one watch; WatchError names the one that has it already.

    What is lent raises WatchError once another watch has taken the store over.
    """
    storage = storage_of(store)
    if isinstance(storage, Directory):
        with _locked(store):
            yield lambda: None
        return
    lease = Lease(storage)
    lease.acquire(say)
    try:
        yield lease.check
    finally:
        lease.release()


@contextmanager
def _locked(store: Path) -> Iterator[None]:
    folder = own_folder(store / ".watch")
    lock = open_own(folder / "lock", os.O_RDWR | os.O_CREAT)
    with os.fdopen(lock, "r+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read().strip() or "another process"
            raise WatchError(
                f"store {store}: {holder} is watching it; rounds do not overlap"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield
