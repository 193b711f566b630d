"""Exchanging batches of a store while others read it.

An exchange goes in an order that a kill cannot harm: the new batch, which bears the names of those
it stands for in `exchange.json`, is renamed into place, then those go, then the note. Who finds a
note finishes the exchange. Readers hold `STORE/.readers` shared, an exchange holds it alone, so
nobody sees a row twice or not at all.
"""

import fcntl
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabricobs import stopping
from fabricobs.errors import UserError

NOTE = "exchange.json"
_LONGEST_WAIT_S = 60.0
_WAIT_STEP_S = 0.1


class BusyError(UserError):
    """A store that somebody has been reading for too long."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Hold the store for reading: nobody exchanges batches meanwhile.

    A store on a read-only disk is read without it: nobody changes that.
    """
    try:
        finish_left(path)
        file = (path / ".readers").open("a")
    except OSError:
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def finish_left(path: Path) -> None:
    """Finish the exchange that a kill has cut, if there is one."""
    if any(path.glob(f"*/{NOTE}")):
        from fabricobs.store.parts import Store  # brings PyArrow, which a query need not load

        with alone(path), Store(path).locked():
            finish(path)


def finish(path: Path) -> None:
    """Take out the batches that others stand for."""
    for note in path.glob(f"*/{NOTE}"):
        for name in json.loads(note.read_text(encoding="utf-8")):
            shutil.rmtree(path / name, ignore_errors=True)
        note.unlink()


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the store while nobody reads; BusyError if that takes longer than a minute."""
    with (path / ".readers").open("a") as file:
        give_up = time.monotonic() + _LONGEST_WAIT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise BusyError(
                        f"store {path}: somebody has been reading it for a minute; try again later"
                    ) from None
                stopping.pause(_WAIT_STEP_S)
        yield
