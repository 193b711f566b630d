"""CPU time of one file: what takes far longer than honest files of its size is ended and named.

In the main thread of a process a timer interrupts reading even inside one search of a regular
expression, which looks for signals as it goes; in other threads `check` looks between lines.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from types import FrameType

from fabricobs.formats.decompression import SourceError, compression_of
from fabricobs.formats.limits import LIMITS, MIB

_COMPRESSED_COUNTS = 16
_SMALL = 1 << 16
_TICK_S = 0.05
# Where reading may be ended at any instruction: nothing is shared that could be left half done.
_READING = ("fabricobs.formats.", "yaml.", "json.")
_ELSEWHERE = ("fabricobs.formats.compiled.", "fabricobs.formats.rows", __name__)


class _Deadline(threading.local):
    at: float = inf  # CPU seconds of the thread
    seconds: float = inf


_DEADLINE = _Deadline()


def seconds_of(path: Path) -> float:
    """Return the CPU time that a file of its size gets, or an archive with all its members."""
    size = path.stat().st_size
    # A small file need not be opened to be asked: it gets little more if it counts as compressed.
    compressed = size < _SMALL or compression_of(path) is not None
    counted = size * (_COMPRESSED_COUNTS if compressed else 1)
    return LIMITS.cpu_s + LIMITS.cpu_s_per_mib * counted / MIB


class Allowance:
    """The CPU time of an archive with all its members, which one thread reads.

    It grows with each member: an archive of many small files is an honest one.
    """

    def __init__(self, archive: Path) -> None:
        self._seconds = seconds_of(archive)
        self._until = time.thread_time() + self._seconds

    def is_used_up(self) -> bool:
        """Say whether the time is over."""
        return time.thread_time() > self._until

    def next_member(self) -> None:
        """Add the time of a member; SourceError if the time is over."""
        self._seconds += LIMITS.cpu_s_per_member
        self._until += LIMITS.cpu_s_per_member
        if self.is_used_up():
            raise SourceError(_exceeded(self._seconds))


def _exceeded(seconds: float) -> str:
    return f"takes more than {seconds:.1f} s of CPU time, the limit for its size"


@contextmanager
def cpu_limit(path: Path) -> Iterator[None]:
    """End the body by SourceError once it has taken the CPU time that a file of its size gets."""
    seconds = seconds_of(path)
    _DEADLINE.seconds, _DEADLINE.at = seconds, time.thread_time() + seconds
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGVTALRM, _interrupt) if in_main else None
    try:
        if in_main:
            # It counts all threads of the process: early, never late, so it comes again.
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _TICK_S)
        yield
    finally:
        _DEADLINE.seconds = _DEADLINE.at = inf
        if in_main:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)


@contextmanager
def uncounted() -> Iterator[None]:
    """Leave out the CPU time of the body: what is done once for all files, as compiling."""
    began = time.thread_time()
    try:
        yield
    finally:
        _DEADLINE.at += time.thread_time() - began


def is_exhausted() -> bool:
    """Say whether the file being read has taken its CPU time."""
    return time.thread_time() > _DEADLINE.at


def check() -> None:
    """Raise SourceError if the file being read has taken its CPU time."""
    if is_exhausted():
        raise SourceError(_exceeded(_DEADLINE.seconds))


def _interrupt(number: int, frame: FrameType | None) -> None:
    module = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    if module.startswith(_READING) and not module.startswith(_ELSEWHERE):
        check()
