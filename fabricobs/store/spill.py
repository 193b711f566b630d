"""Where DuckDB spills: a directory of this process that nobody else can read.

The process holds a lock on it, which the kernel releases even if the process is killed; a later
process removes the directories of this user that nobody holds.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from uuid import uuid4

_PREFIX = "fabricobs-spill-"


def spill_directory() -> Path:
    """Return a directory for one session; DuckDB makes it if it spills and removes it at the end.

    OSError if the directory for temporary files cannot be written.
    """
    return _directory_of(os.getpid()) / uuid4().hex


@cache
def _directory_of(pid: int) -> Path:
    _remove_abandoned(Path(tempfile.gettempdir()))
    while True:
        made = Path(tempfile.mkdtemp(prefix=_PREFIX))  # mode 0700
        # Another process may take it for abandoned before it is locked.
        if _lock(made) is not None and made.is_dir():
            atexit.register(_remove, made, pid)
            return made


def _lock(directory: Path) -> int | None:
    """Lock a directory; return the descriptor that holds the lock, None if another process does."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove(directory: Path, pid: int) -> None:
    if os.getpid() == pid:  # a forked child ends too
        shutil.rmtree(directory, ignore_errors=True)


def _remove_abandoned(parent: Path) -> None:
    for left in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if left.lstat().st_uid != os.getuid():
                continue
        descriptor = _lock(left)
        if descriptor is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(descriptor)
