"""What a watch remembers between rounds: incidents, and what is to be told; in `STORE/.watch/`.

The memory is written before anything is sent, and again after each thing sent. A kill in between
leads to the same event sent twice under the same key, never to one that nobody is told of.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fabricobs.diagnosis.incidents import Event, Incident
from fabricobs.errors import UserError

_VERSION = 1


class WatchError(UserError):
    """A watch that cannot run; the text says what to do."""


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


def load_memory(store: Path) -> Memory:
    """Return what the last round left; an empty memory before the first one."""
    path = store / ".watch" / "state.json"
    try:
        memory = _AS_JSON.validate_json(path.read_bytes())
    except FileNotFoundError:
        return Memory()
    except ValidationError as error:
        raise WatchError(
            f"{path}: no state of a watch ({error.error_count()} mistakes); move it away to begin "
            "anew: standing incidents will be told of again"
        ) from error
    if memory.version != _VERSION:
        raise WatchError(f"{path}: written by another release of fabricobs; move it away")
    return memory


def save_memory(memory: Memory, store: Path) -> None:
    """Write the memory to the disk, all of it or nothing; OSError if there is no room."""
    folder = store / ".watch"
    unfinished = folder / "state.json.new"
    with unfinished.open("wb") as file:
        file.write(_AS_JSON.dump_json(memory, indent=1))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(folder / "state.json")


@contextmanager
def only_watch(store: Path) -> Iterator[None]:
    """Hold the store for one watch; WatchError names the one that has it already."""
    folder = store / ".watch"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise WatchError(
                f"store {store}: {holder} is watching it; rounds do not overlap"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield
