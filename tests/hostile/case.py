"""One hostile case: what it writes, and how an ingest of it must end."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

# refused: no row of it is kept. cut: the rows before the failure are kept. cells: all lines are
# read, some cells are left out. read: nothing is wrong with it.
End = Literal["refused", "cut", "cells", "read"]
Write = Callable[[Path], None]

EXIT_CODES: dict[End, int] = {"refused": 3, "cut": 1, "cells": 1, "read": 0}
MOST_MEMORY = 512 << 20  # bytes of peak RSS of the whole ingest


@dataclass(frozen=True, slots=True)
class Case:
    """A generator, its expected end, and a text that the note about the file contains.

    `rows` is the number of rows that the hostile files give, where it is certain.
    """

    name: str
    write: Write
    end: End
    says: str = ""
    rows: int | None = None


CASES: dict[str, Case] = {}


def hostile(end: End, says: str = "", *, rows: int | None = None) -> Callable[[Write], Write]:
    """Register a function that writes hostile files into an empty folder as a case."""

    def register(write: Write) -> Write:
        name = write.__name__
        assert name not in CASES, f"two cases are called {name}"
        CASES[name] = Case(name, write, end, says, rows)
        return write

    return register
