"""Cache of files that are costly to make: machine code of the kernels.

They lie beside the sources, as what Python compiles, or in the user's cache. A file that another
user could have written is not read.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import xxhash

from fabricobs.printing import note


def _places(sources: Path) -> Iterator[Path]:
    """Yield where a file may be kept."""
    yield sources / "__pycache__"
    with suppress(RuntimeError):
        cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        yield Path(cache_home) / "fabricobs"


def kept(name: str, sources: Path) -> bytes | None:
    """Return a kept file; None if there is none, or none that only this user or root can write."""
    foreign = []
    for place in _places(sources):
        with suppress(OSError, ValueError):
            path = (place / name).resolve(strict=True)
            if not is_ours(path):
                foreign.append(path)
                continue
            digest, data = path.read_bytes().split(b"\n", 1)
            if digest == xxhash.xxh3_128_hexdigest(data).encode():
                return data
    for path in foreign:
        _warn_once(f"{path} is not loaded: another user could have written it")
    return None


@cache
def _warn_once(text: str) -> None:
    note(text)


def is_ours(path: Path) -> bool:
    """Say whether only this user or root can have written a file, given its path without links.

    In a directory with the sticky bit (/tmp) nobody replaces the files of others. OSError if it is
    not there.
    """
    for part in (path, *path.parents):
        status = part.lstat()
        if status.st_uid not in {os.getuid(), 0}:
            return False
        by_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if by_others and not (part != path and status.st_mode & stat.S_ISVTX):
            return False
    return True


def keep(name: str, data: bytes, sources: Path) -> None:
    """Keep a file where that can be done; without it the next run makes it again."""
    for place in _places(sources):
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not is_ours(place.resolve()):
                continue
            unfinished = place / f"{name}.{os.getpid()}"
            # Beside the sources all users share it, as they share what Python compiles.
            mode = 0o644 if place.is_relative_to(sources) else 0o600
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(xxhash.xxh3_128_hexdigest(data).encode() + b"\n" + data)
            unfinished.replace(place / name)
            return
