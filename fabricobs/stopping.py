"""Stopping on a signal, by a flag that no library can swallow.

SIGTERM, SIGINT and SIGHUP set the flag. Long work calls `check` between its parts and `pause` where
it waits: both raise `Stopped`. A thread hears the signal even while the main thread is inside a
library: it interrupts DuckDB, passes the signal on to worker processes, and ends the process
GRACE_S after the signal if it is still there. So does a second signal, at once. An end at any
moment leaves a valid store, as `kill -9` does.
"""

import atexit
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, Protocol
from weakref import WeakSet

from fabricobs.printing import note

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

GRACE_S = 5.0
# `timeout` and terminals signal a process and its group: the same request, a moment later.
_SAME_REQUEST_S = 0.5
_INTERRUPT_EVERY_S = 0.1
_QUIET_TRACKER = "ignore::UserWarning:multiprocessing.resource_tracker"
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)


class Stopped(BaseException):
    """The user or the system asked to stop."""


class Interruptible(Protocol):
    """What can be interrupted from another thread: a connection of DuckDB."""

    def interrupt(self) -> None:
        """End the running query with an error."""
        ...


_asked = threading.Event()
_signal: int | None = None
_status: int | None = None
_connections: WeakSet[Interruptible] = WeakSet()
_lock = threading.Lock()


def listen() -> None:
    """Stop at the signals from now on; one that is ignored (nohup) stays ignored."""
    # A process that is ended hard leaves semaphores to multiprocessing, which tells of them.
    filters = list(filter(None, os.environ.get("PYTHONWARNINGS", "").split(",")))
    if _QUIET_TRACKER not in filters:  # a worker inherits it
        os.environ["PYTHONWARNINGS"] = ",".join([*filters, _QUIET_TRACKER])
    heard, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _note)
    # The thread keeps `told` open as long as the process lives.
    threading.Thread(target=_hear, args=(heard, told), name="signals", daemon=True).start()


def leave_to_defaults() -> None:
    """Give the signals back to the system and Python, for an interactive program."""
    signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        if signal.getsignal(number) is _note:
            python = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, python)


def exit_status() -> int:
    """Return the status to exit with after a signal: 128 + its number, unless a command chose."""
    return 128 + (_signal or 0) if _status is None else _status


def exit_with(status: int) -> None:
    """Choose the status of a program that runs until it is stopped."""
    global _status
    _status = status


def ending() -> str:
    """Return the note that a stopped command ends with."""
    name = signal.Signals(_signal or 0).name
    return f"stopped by {name}; the store is valid: rerun the same command to resume"


def check() -> None:
    """Raise Stopped if a signal has asked to stop."""
    if _asked.is_set():
        raise Stopped


def pause(seconds: float) -> None:
    """Wait; raise Stopped as soon as a signal asks to stop."""
    _asked.wait(seconds)
    check()


def interruptible(connection: Interruptible) -> None:
    """Have the queries of a connection end when a signal asks to stop."""
    check()
    with _lock:
        _connections.add(connection)


def end() -> NoReturn:
    """End a stopped process: do what is to be done at exit, and leave the rest to the system.

    An interrupted call may hold a connection still, of which DuckDB's binding complains otherwise.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(exit_status())


def _note(number: int, _: object) -> None:
    """Take the signal; the thread that hears it does the rest."""
    global _signal
    _signal = _signal or number
    _asked.set()


def _hear(heard: socket.socket, _: socket.socket) -> None:
    numbers = _numbers(heard)
    _note(next(numbers), None)
    began = time.monotonic()
    for child in _workers():
        child.terminate()
    again = threading.Thread(target=_end_on_second, args=(numbers, began), daemon=True)
    again.start()
    while time.monotonic() - began < GRACE_S:
        with _lock:
            connections = list(_connections)
        for connection in connections:
            # One that was closed meanwhile refuses; this thread must live to end the process.
            with suppress(Exception):
                connection.interrupt()
        time.sleep(_INTERRUPT_EVERY_S)
    _end()


def _workers() -> "list[BaseProcess]":
    """Return the processes that this one has started to read for it."""
    module = sys.modules.get("multiprocessing")
    return [] if module is None else module.active_children()


def _numbers(heard: socket.socket) -> Iterator[int]:
    """Yield the signals that ask to stop; others (a window of another size) come here too."""
    while received := heard.recv(64):
        yield from (number for number in received if number in _SIGNALS)


def _end_on_second(numbers: Iterator[int], began: float) -> None:
    for _ in numbers:
        if time.monotonic() - began > _SAME_REQUEST_S:
            _end()


def _end() -> NoReturn:
    for child in _workers():
        child.kill()
    note(ending())
    os._exit(exit_status())
