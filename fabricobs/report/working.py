"""Elapsed time on a terminal while a command works; imports rich only for a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal what a command does, and for how long, until it is done."""
    if not sys.stderr.isatty():
        yield
        return
    from fabricobs.report.progress import elapsed

    with elapsed(what):
        yield
