"""Inputs in an object store: one list tells all of them, and a copy lies here while one is read.

The path of an object is its address. It is told from others by its size and ETag, and its time of
change is that of its upload. A copy that planning made may be kept for the reader on this machine.
"""

import os
import secrets
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path, PurePosixPath
from shutil import rmtree

from fabricobs.exceptions import UserError
from fabricobs.formats.decompression import SourceError
from fabricobs.store.location import as_address, is_address, place_of
from fabricobs.store.objects import Objects, whole_seconds
from fabricobs.store.storage import RefusedError, remove_abandoned, storage_of, workplace

# Copies that one process has at the same time; a single one may be larger.
_AT_ONCE = 8
_BYTES_AT_ONCE = 256 << 20
# Copies that an ingest keeps between planning and reading, of all its processes.
_MOST_KEPT_BYTES = 1 << 30
_LOOKED_AFTER = 64  # copies that found no room, until the room is looked for again
_LONGEST_NAME = 200
_ABANDONED_AFTER = timedelta(days=1)

# Size in bytes, time of change in ns since 1970, ETag.
Listed = tuple[int, int, str]


def listed(root: Path) -> list[tuple[str, Listed]]:
    """Return the objects below an address, by their keys below it, as a walk would find them.

    UserError if there are none. The key of an object that was given itself is empty.
    """
    bucket, prefix = _bucket_and_key(root)
    remove_abandoned(bucket.path, datetime.now(UTC).replace(tzinfo=None) - _ABANDONED_AFTER)
    found = bucket.listed(prefix)
    if not found:
        raise UserError(
            f"{as_address(root)}: no object of this key, and none below it; expected logs: check "
            "the address and AWS_ENDPOINT"
        )
    objects = [
        (
            each["path"][len(prefix) :].strip("/"),
            (each["size"], whole_seconds(each["last_modified"]) * 10**9, each["e_tag"] or ""),
        )
        for each in found
    ]
    return sorted(objects, key=lambda each: _in_walk(each[0]))


def _in_walk(below: str) -> list[tuple[bool, str]]:
    """Return what sorts keys as a walk meets files: those of a folder, then its folders."""
    *folders, name = below.split("/")
    return [*((True, folder) for folder in folders), (False, name)]


def check(root: Path) -> None:
    """Raise UserError if this machine cannot list an address."""
    bucket, prefix = _bucket_and_key(root)
    bucket.stat(prefix or "-")


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder for copies that planning keeps for reading, and the room for those of a process."""

    folder: Path
    most_bytes: int

    def keeper(self) -> "Keeper":
        """Return what keeps the copies of this process."""
        return Keeper(self.folder / str(os.getpid()), self.most_bytes)


class Keeper:
    """Keeps copies while there is room; who reads one removes it."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._refused = 0
        folder.mkdir(exist_ok=True)
        self._room = self._looked_up()

    def keep(self, copy: Path, size: int) -> Path | None:
        """Move a copy here and return its place; None if there is no room."""
        if size > self._room:
            self._refused += 1
            if self._refused % _LOOKED_AFTER == 1:
                self._room = self._looked_up()
            if size > self._room:
                return None
        kept = self._folder / secrets.token_hex(8)
        copy.rename(kept)
        self._room -= size
        return kept

    def _looked_up(self) -> int:
        used = 0
        for entry in os.scandir(self._folder):
            with suppress(FileNotFoundError):  # a reader has just taken it
                used += entry.stat().st_size
        return self._most_bytes - used


@contextmanager
def shelf(paths: Iterable[Path], processes: int) -> Iterator[Shelf | None]:
    """Lend a shelf for the objects among the inputs; None where all are files."""
    place = next((_bucket_and_key(path)[0].path for path in paths if is_address(path)), None)
    if place is None:
        yield None
        return
    with workplace(place) as folder:
        yield Shelf(folder, _MOST_KEPT_BYTES // processes)


@contextmanager
def local(path: Path, kept: Path | None = None) -> Iterator[Path]:
    """Lend the copy of an object, or the file itself; SourceError if the object is gone.

    A copy that was kept stays where it is.
    """
    if kept is not None and kept.exists():
        yield kept
        return
    with closing(local_copies([(path, 0)])) as copies:
        yield next(copies)()


def local_copies(
    files: Sequence[tuple[Path, int]], kept: Sequence[Path | None] = ()
) -> Generator[Callable[[], Path]]:
    """Yield for each path and size what returns its file here, which stays until the next is asked.

    It raises SourceError if the object is gone or refused, StorageError if the server does not
    answer. The next objects are copied meanwhile. `kept` are the copies that lie here already, in
    the same order: they are taken, so that nothing of them stays.
    """
    places = [_bucket_and_key(path)[0].path for path, _ in files if is_address(path)]
    if not places:
        yield from (partial(_itself, path) for path, _ in files)
        return
    had = kept or [None] * len(files)
    with workplace(places[0]) as folder, ThreadPoolExecutor(_AT_ONCE) as pool:
        begun: deque[Future[Path]] = deque()
        asked = ahead = 0
        for number, (_, size) in enumerate(files):
            while asked < min(number + _AT_ONCE, len(files)) and (
                asked == number or ahead + files[asked][1] <= _BYTES_AT_ONCE
            ):
                path = files[asked][0]
                begun.append(pool.submit(_copied, path, folder / str(asked), had[asked]))
                ahead += files[asked][1]
                asked += 1
            yield begun.popleft().result
            rmtree(folder / str(number), ignore_errors=True)
            ahead -= size


def _itself(path: Path) -> Path:
    return path


def _copied(path: Path, folder: Path, kept: Path | None) -> Path:
    """Return the copy of an object in a new folder, or the file itself."""
    if not is_address(path):
        return path
    bucket, key = _bucket_and_key(path)
    folder.mkdir()
    target = folder / PurePosixPath(key).name[-_LONGEST_NAME:]
    if kept is not None:
        with suppress(FileNotFoundError):  # read before: its process was killed, or failed
            return kept.rename(target)
    try:
        bucket.copy(key, target)
    except FileNotFoundError:
        raise SourceError("is gone since it was listed; the next ingest lists anew") from None
    except RefusedError as error:
        raise SourceError(str(error).partition(": ")[2]) from error
    return target


def _bucket_and_key(path: Path) -> tuple[Objects, str]:
    address = as_address(path) or ""
    bucket, _, key = address.removeprefix("s3://").partition("/")
    found = storage_of(place_of(Path(f"s3://{bucket}")))
    assert isinstance(found, Objects)
    return found, key
