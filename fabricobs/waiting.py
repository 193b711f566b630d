"""Elapsed time on a terminal while a statement runs, until its first row comes."""

import sys
import threading
import time
from types import TracebackType
from typing import Self

AFTER = 2.0  # seconds until it is told: small statements answer at once
_EVERY = 1.0  # seconds
_CLEARED = "\r\x1b[K"


class Waiting:
    """Shows on standard error how long something takes, until `over` or the end of the body."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and self._thread.ident is None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over()

    def over(self) -> None:
        """Take away what is shown: something else is printed now."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _tell(self) -> None:
        begun, pause, shown = time.monotonic(), AFTER, ""
        while not self._over.wait(pause):
            shown = f"\r{self._what} {time.monotonic() - begun:.0f} s"
            _write(shown)
            pause = _EVERY
        if shown:
            _write(_CLEARED)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
