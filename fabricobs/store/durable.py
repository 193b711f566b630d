"""Durable writes: files that survive a power cut, no symbolic links.

A rename shows a name at once, but only `fsync` brings a file, its directory and the directory of
the new name to the disk. Whatever a store says is data: somebody else may have made it, and a
symbolic link in it must not lead a reader or a writer to a file elsewhere.
"""

import errno
import os
from pathlib import Path
from stat import S_ISREG

_SYNCS_AT_ONCE = 8
_LINKS = "is a symbolic link; inside a store none is followed"


def open_own(path: Path, flags: int) -> int:
    """Open a file of the store and return its descriptor; OSError for a link or a device."""
    try:
        opened = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, _LINKS, str(path)) from error
        raise
    if not S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "is no regular file", str(path))
    return opened


def own_folder(path: Path) -> Path:
    """Make a folder of the store unless it is there; OSError if it is a symbolic link."""
    path.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        raise OSError(errno.ELOOP, _LINKS, str(path))
    return path


def read_own(path: Path, most_bytes: int) -> bytes:
    """Return what a small file of the store holds; ValueError if it is larger than that."""
    with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"{path}: larger than {most_bytes:,} bytes")
    return data


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    except OSError as error:
        # Some network file systems cannot sync a directory: their server does it.
        if error.errno not in {errno.EINVAL, errno.EBADF} or not path.is_dir():
            raise
    finally:
        os.close(opened)


def sync_tree(directory: Path) -> None:
    """Wait until the files of a directory, and their names in it, are on the disk."""
    from concurrent.futures import ThreadPoolExecutor  # an ingest of nothing new needs none

    # A file system brings what is asked for at one time to the disk with one write of its journal.
    with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
        list(pool.map(sync, directory.iterdir()))
    sync(directory)


def limit_access(path: Path, folder: Path) -> None:
    """Give nobody more access to a path than the directory of its final name gives."""
    path.chmod(path.stat().st_mode & folder.stat().st_mode & 0o777)


def publish(unfinished: Path, target: Path) -> None:
    """Give a file or directory, on the disk already, its final name and wait for that too.

    Nobody gets more access to it than the directory of the new name gives.
    """
    for path in (unfinished, *(unfinished.iterdir() if unfinished.is_dir() else ())):
        limit_access(path, target.parent)
    unfinished.replace(target)
    sync(target.parent)
