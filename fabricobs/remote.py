"""Inputs in an object store: one list tells all of them, and a copy lies here while one is read.

The path of an object is its address. It is told from others by its size and ETag, and its time of
change is that of its upload.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
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


@contextmanager
def local(path: Path) -> Iterator[Path]:
    """Lend the copy of an object, or the file itself; SourceError if the object is gone."""
    with closing(local_copies([(path, 0)])) as copies:
        yield next(copies)()


def local_copies(files: Sequence[tuple[Path, int]]) -> Generator[Callable[[], Path]]:
    """Yield for each path and size what returns its file here, which stays until the next is asked.

    It raises SourceError if the object is gone or refused, StorageError if the server does not
    answer. The next objects are copied meanwhile.
    """
    places = [_bucket_and_key(path)[0].path for path, _ in files if is_address(path)]
    if not places:
        yield from (partial(_itself, path) for path, _ in files)
        return
    with workplace(places[0]) as folder, ThreadPoolExecutor(_AT_ONCE) as pool:
        begun: deque[Future[Path]] = deque()
        asked = ahead = 0
        for number, (_, size) in enumerate(files):
            while asked < min(number + _AT_ONCE, len(files)) and (
                asked == number or ahead + files[asked][1] <= _BYTES_AT_ONCE
            ):
                begun.append(pool.submit(_copied, files[asked][0], folder / str(asked)))
                ahead += files[asked][1]
                asked += 1
            yield begun.popleft().result
            rmtree(folder / str(number), ignore_errors=True)
            ahead -= size


def _itself(path: Path) -> Path:
    return path


def _copied(path: Path, folder: Path) -> Path:
    """Return the copy of an object in a new folder, or the file itself."""
    if not is_address(path):
        return path
    bucket, key = _bucket_and_key(path)
    folder.mkdir()
    target = folder / PurePosixPath(key).name[-_LONGEST_NAME:]
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
