"""Errors of the user, and how unexpected errors of the program are reported."""

import os
from pathlib import Path
from traceback import extract_tb, print_exception

UNEXPECTED = 70  # the exit code: EX_SOFTWARE of sysexits.h
TRACEBACK = "FABRICOBS_TRACEBACK"
_PACKAGE = Path(__file__).parent
_MOST_TEXT = 200


class UserError(Exception):
    """Something the user can mend; the text says what, where and how."""


def unexpected(error: BaseException) -> str:
    """Return in one line what an error of the program is and where it happened.

    The traceback goes to standard error where $FABRICOBS_TRACEBACK is set.
    """
    if os.environ.get(TRACEBACK):
        print_exception(error)
    frames = [f for f in extract_tb(error.__traceback__) if _PACKAGE in Path(f.filename).parents]
    place = ""
    if frames:
        path = Path(frames[-1].filename).relative_to(_PACKAGE.parent)
        place = f" at {path}:{frames[-1].lineno}"
    text = " ".join(str(error).split())[:_MOST_TEXT]
    return f"unexpected {type(error).__name__}{place}{': ' if text else ''}{text}"
