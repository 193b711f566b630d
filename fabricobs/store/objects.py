"""A store in an object store (S3), and the copies of its parts that this machine keeps.

An object is created by a conditional put, which only one writer can win. Parts never change: a part
is fetched once, compared with its digest, and read by DuckDB from the disk.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from fabricobs.exceptions import UserError
from fabricobs.store.integrity import digest_of
from fabricobs.store.location import shown
from fabricobs.store.log import Part
from fabricobs.store.storage import DamagedPartError, RefusedError, Stat, StorageError, workplace

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import S3Store

_AT_ONCE = 8
# A browser shows a page only by its type.
_TYPES = {".html": "text/html; charset=utf-8"}
# Half a minute in all: a server that restarts is back by then.
_RETRIES = 12
_LONGEST_WAIT = timedelta(seconds=4)
_FIRST_WAIT = timedelta(seconds=0.1)
_GROWTH = 5  # obstore draws each wait between the first one and this many times the last one
# Of a body that was cut, or of a write whose answer was lost.
_ATTEMPTS = 3
# Copies on this disk, of all stores; those used within the hour stay, because a reader has them.
_MOST_CACHED_BYTES = 20 << 30
_IN_USE_S = 3600.0
_STATUS = re.compile(r"status code: (\d+ [A-Z][A-Za-z ]*)")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_T = TypeVar("_T")


class Objects:
    """A prefix of a bucket. `path` is the directory of this machine for it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.address = shown(path)
        self._objects = _connected(self.address)
        path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def read(self, key: str) -> bytes:
        """Return an object; FileNotFoundError if there is none."""
        import obstore

        return self._repeated(lambda: bytes(obstore.get(self._objects, key).bytes()))

    def create(self, key: str, data: bytes) -> bool:
        """Put an object unless there is one of that key.

        A put whose answer was lost is repeated and finds what it wrote itself: the bytes tell.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        def put() -> bool:
            try:
                obstore.put(self._objects, key, data, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return bytes(obstore.get(self._objects, key).bytes()) == data
            return True

        return self._repeated(put)

    def replace(self, key: str, data: bytes) -> None:
        """Put an object in the place of what there is."""
        import obstore

        kind = _TYPES.get(PurePosixPath(key).suffix)
        named = None if kind is None else {"Content-Type": kind}
        self._repeated(
            lambda: obstore.put(self._objects, key, data, attributes=named, use_multipart=False)
        )

    def keys(self, folder: str, after: str = "") -> list[str]:
        """Return the objects of a folder by their keys."""
        import obstore

        def listed() -> list[str]:
            found = obstore.list(self._objects, folder, offset=after or None, chunk_size=1000)
            return sorted(each["path"] for some in found for each in some)

        return self._repeated(listed)

    def listed(self, folder: str) -> "list[ObjectMeta]":
        """Return what is known of the objects of a folder, or of the one object of that key."""
        import obstore

        found = self._repeated(lambda: obstore.list(self._objects, folder or None).collect())
        if found or not folder:
            return list(found)
        try:
            return [self._repeated(lambda: obstore.head(self._objects, folder))]
        except FileNotFoundError:
            return []

    def folders(self) -> list[str]:
        """Return the folders that may be batches."""
        import obstore

        found = self._repeated(lambda: obstore.list_with_delimiter(self._objects))
        names = (prefix.rstrip("/") for prefix in found["common_prefixes"])
        return sorted(name for name in names if name[0] not in "._")

    def modified(self, folder: str) -> datetime | None:
        """Return when an object was put into a folder last, UTC without a zone."""
        times = [each["last_modified"].replace(tzinfo=None) for each in self.listed(folder)]
        return max(times, default=None)

    def stat(self, key: str) -> Stat | None:
        """Return the size of an object, and its tag and time as its stamp."""
        import obstore

        try:
            found = self._repeated(lambda: obstore.head(self._objects, key))
        except FileNotFoundError:
            return None
        return Stat(found["size"], f"{found['e_tag']}-{found['last_modified'].isoformat()}")

    def put_folder(self, written: Path, name: str) -> None:
        """Upload the files of a workplace, large ones in pieces, and keep them as copies."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(
                pool.map(lambda file: self._upload(file, f"{name}/{file.name}"), written.iterdir())
            )
        written.rename(self.path / name)

    def remove(self, folder: str) -> None:
        """Delete all objects of a folder, and their copies here."""
        self.delete(self.keys(folder))
        shutil.rmtree(self.path / folder, ignore_errors=True)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects."""
        import obstore

        if keys:
            self._repeated(lambda: obstore.delete(self._objects, list(keys)))

    def fetch(self, parts: Mapping[str, Part], *, anew: bool = False) -> None:
        """Copy parts here that are not here yet; `anew`: all of them.

        DamagedPartError for one that is missing or holds other bytes than were written.
        """
        wanted = {key: part for key, part in parts.items() if anew or not self._is_here(key, part)}
        if wanted:
            _make_room(self.path.parent, sum(part.size_bytes for part in wanted.values()))
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(lambda each: self._fetch(*each), wanted.items()))

    def copy(self, key: str, target: Path) -> None:
        """Copy an object to a file, which gets its time; FileNotFoundError if there is none."""
        import obstore

        def copied() -> bool:
            got = obstore.get(self._objects, key)
            with target.open("wb") as file:
                for block in got.stream():
                    file.write(block)
            changed = whole_seconds(got.meta["last_modified"])
            os.utime(target, (changed, changed))
            return target.stat().st_size == got.meta["size"]

        address = f"{self.address}/{key}"
        if not any(self._repeated(copied, address) for _ in range(_ATTEMPTS)):
            raise StorageError(f"{address}: its bytes break off each time; run it again")

    def at_hand(self, keys: Sequence[str]) -> list[str]:
        """Return the parts that have been copied here."""
        return [key for key in keys if (self.path / key).exists()]

    def _is_here(self, key: str, part: Part) -> bool:
        copy = self.path / key
        try:
            here = copy.lstat().st_size == part.size_bytes
            copy.touch()  # the oldest use goes first
        except FileNotFoundError:
            return False
        return here

    def _upload(self, file: Path, key: str) -> None:
        import obstore

        self._repeated(lambda: obstore.put(self._objects, key, file))

    def _fetch(self, key: str, part: Part) -> None:
        target = self.path / key

        def copied() -> bool:
            with workplace(self.path) as folder:
                copy = folder / target.name
                self.copy(key, copy)
                if digest_of(copy) != part.digest:
                    return False
                target.parent.mkdir(exist_ok=True, mode=0o700)
                copy.replace(target)
            return True

        try:
            if any(copied() for _ in range(_ATTEMPTS)):
                return
        except FileNotFoundError:
            raise self._damaged(f"{key} is missing") from None
        raise self._damaged(f"{key} holds other bytes than were written")

    def _damaged(self, fault: str) -> DamagedPartError:
        mend = f"run `fabricobs verify --store {self.address} --repair`"
        return DamagedPartError(f"store {self.address}: {fault}; {mend}")

    def _repeated(self, call: Callable[[], _T], address: str | None = None) -> _T:
        """Return what a call returns; StorageError, in one line, if it fails each time.

        obstore repeats a request that is refused; it cannot repeat one whose answer is cut.
        """
        from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

        where = address or self.address
        for attempt in range(_ATTEMPTS):
            try:
                return call()
            except (PermissionDeniedError, UnauthenticatedError) as error:
                mend = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what this key may do"
                raise RefusedError(f"{where}: {_reason(error)}; {mend}") from error
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise self._no_bucket() from error
                raise
            except BaseError as error:
                if "NoSuchBucket" in str(error):
                    raise self._no_bucket() from error
                if attempt == _ATTEMPTS - 1 or "max_retries" in _message(error):
                    mend = "check AWS_ENDPOINT, AWS_REGION and the network, and run it again"
                    raise StorageError(f"{where}: {_reason(error)}; {mend}") from error
        raise AssertionError("unreachable")

    def _no_bucket(self) -> StorageError:
        return StorageError(f"{self.address}: no such bucket; create it, or check AWS_ENDPOINT")


def _connected(address: str) -> "S3Store":
    """Return the connection to a prefix, as the variables of the AWS tools say."""
    try:
        from obstore.store import S3Store
    except ImportError:
        raise UserError(
            f"{address}: needs obstore; install it with `pip install 'fabricobs[s3]'`"
        ) from None
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    return S3Store(
        bucket,
        prefix=prefix or None,
        retry_config={
            "max_retries": _RETRIES,
            "backoff": {"init_backoff": _FIRST_WAIT, "max_backoff": _LONGEST_WAIT, "base": _GROWTH},
        },
    )


def whole_seconds(changed: datetime) -> int:
    """Return a time of change in s since 1970; answers tell it in seconds, lists in finer parts."""
    return int(changed.timestamp())


def _reason(error: Exception) -> str:
    """Return in one line what the server, or the way to it, answers."""
    text = _message(error)
    code = _CODE.search(text)
    status = _STATUS.search(text)
    if status is not None:
        return f"the server answers {status[1]}{'' if code is None else f' ({code[1]})'}"
    return " ".join(text.split())


def _message(error: Exception) -> str:
    """Return what an error says, without its inner state."""
    return str(error).partition("\n\nDebug source")[0]


def _make_room(stores: Path, wanted: int) -> None:
    """Remove the copies that were used longest ago until what is wanted fits."""
    parts = []
    for copy in stores.glob("*/*/*.parquet"):
        with suppress(FileNotFoundError):  # another process removes it
            found = copy.lstat()
            parts.append((found.st_mtime, found.st_size, copy))
    over = sum(size for _, size, _ in parts) + wanted - _MOST_CACHED_BYTES
    for used, size, copy in sorted(parts):
        if over <= 0 or used > time.time() - _IN_USE_S:
            return
        copy.unlink(missing_ok=True)
        over -= size
