"""One watch per store in an object store, where no file can be locked.

The lease is a row of numbered entries, and the newest one counts. An entry is put only if there is
none of its number, so that of two watches one is told that the other was first. The holder adds an
entry every few seconds; an entry that has no successor after a while was left by a watch that was
killed. No clock of any machine is compared with another's.
"""

import json
import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread

from fabricobs import stopping
from fabricobs.exceptions import UserError
from fabricobs.store.location import shown
from fabricobs.store.storage import Storage, StorageError

_FOLDER = ".watch/lease"
_RENEWED_EVERY_S = 20.0
# Longer than a server is away that restarts, and than the requests to it are repeated.
_EXPIRES_AFTER_S = 90.0
_LOOKED_EVERY_S = 2.0
_ATTEMPTS = 3


class WatchError(UserError):
    """A watch that cannot run; the text says what to do."""


@dataclass(frozen=True, slots=True)
class _Entry:
    number: int
    holder: str = ""
    is_released: bool = True


class Lease:
    """The right to watch a store, from `acquire` to `release`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._store = shown(storage.path)
        self._holder = f"process {os.getpid()} on {socket.gethostname()}"
        self._number = 0
        self._renewed = 0.0
        self._is_lost = False
        self._lock = Lock()
        self._ends = Event()
        self._thread = Thread(target=self._keep_renewing, daemon=True)

    def acquire(self, say: Callable[[str], None]) -> None:
        """Take the lease; WatchError names the watch that has it.

        A watch that was killed did not release it: that nobody renews it is waited for.
        """
        entry = self._newest()
        if not entry.is_released:
            say(
                f"store {self._store}: the last watch, {entry.holder}, did not end; waiting up to "
                f"{_EXPIRES_AFTER_S:.0f} s to see whether it runs"
            )
            give_up = time.monotonic() + _EXPIRES_AFTER_S
            while time.monotonic() < give_up:
                stopping.pause(_LOOKED_EVERY_S)
                found = self._newest()
                if found.is_released:
                    entry = found
                    break
                if found.number != entry.number:
                    raise self._held_by(found)
        self._number = entry.number
        self._add()
        if self._is_lost:
            raise self._held_by(self._newest())
        self._thread.start()

    def check(self) -> None:
        """Raise WatchError if another watch has taken the lease, because this one stood still."""
        if time.monotonic() - self._renewed > _EXPIRES_AFTER_S:
            with suppress(StorageError):  # where nothing can be written, nothing is kept or told
                self._add()
        if self._is_lost:
            raise self._held_by(self._newest())

    def release(self) -> None:
        """Let another watch take it at once."""
        self._ends.set()
        self._thread.join()
        with suppress(StorageError):  # then it expires
            self._add(is_released=True)

    def _keep_renewing(self) -> None:
        while not self._ends.wait(_RENEWED_EVERY_S):
            with suppress(StorageError):  # a server that is away: tried again
                self._add()

    def _add(self, *, is_released: bool = False) -> None:
        with self._lock:
            if self._is_lost:
                return
            before, number = self._number, self._number + 1
            document = {
                "holder": self._holder,
                "released": is_released,
                "token": secrets.token_hex(8),
            }
            self._is_lost = not self._storage.create(_key(number), json.dumps(document).encode())
            if self._is_lost:
                return
            self._number, self._renewed = number, time.monotonic()
            # An entry may be put again after its successor has come and it was removed.
            self._is_lost = self._last_number() > number
            if before and not self._is_lost:
                self._storage.delete([_key(before)])

    def _newest(self) -> _Entry:
        number = 0
        for _ in range(_ATTEMPTS):
            number = self._last_number()
            if not number:
                return _Entry(0)
            try:
                document = json.loads(self._storage.read(_key(number)))
                return _Entry(number, str(document["holder"]), bool(document["released"]))
            except FileNotFoundError:
                continue  # its successor has come
            except (ValueError, KeyError, TypeError):
                break
        return _Entry(number, "an unknown process", is_released=False)

    def _last_number(self) -> int:
        keys = self._storage.keys(_FOLDER)
        return int(keys[-1].rpartition("/")[2].partition(".")[0]) if keys else 0

    def _held_by(self, entry: _Entry) -> WatchError:
        return WatchError(
            f"store {self._store}: {entry.holder} is watching it; rounds do not overlap"
        )


def _key(number: int) -> str:
    return f"{_FOLDER}/{number:012d}.json"
