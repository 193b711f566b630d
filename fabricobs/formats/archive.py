"""Archives, tar (compressed or not) and zip: one member at a time, and nothing written but what is
read. An archive inside an archive is a folder of it.

Only regular files with a path inside the archive are unpacked, each for the time it takes to read
it; links and devices carry no log, and a path that leads outside is refused.
"""

import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from fabricobs.formats.decompression import BROKEN, SourceError, open_plain
from fabricobs.formats.limits import LIMITS, in_mib
from fabricobs.formats.private_files import is_private
from fabricobs.formats.source import BLOCK
from fabricobs.formats.values import LATEST_US
from fabricobs.store.log import StoreError

_MAGIC = b"ustar"
_MAGIC_AT = 257
_ZIP_MAGIC = b"PK\x03\x04"
_ZIP_UNIX_TIME = 0x5455  # the extra field of Info-ZIP that has the time in UTC
_DEEPEST = 3  # archives inside one another
_IN_MEMORY = {
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_SPARSE,
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Member:
    """A file of an archive, unpacked at `path`; or why it is not (`problem`)."""

    name: str
    path: Path
    modified_us: int | None
    problem: str | None = None


def open_new(place: Path) -> BinaryIO:
    """Open a file of that name that was not there: ext4 flushes one that is truncated (4 ms)."""
    place.unlink(missing_ok=True)
    return place.open("xb")


def is_archive(head: bytes, name: str) -> bool:
    """Say whether the first (decompressed) bytes are those of a tar archive, or a zip's.

    Checkpoints and office documents are zips too: a zip of logs is known by its name as well.
    """
    is_tar = head[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] == _MAGIC
    return is_tar or (head.startswith(_ZIP_MAGIC) and name.lower().endswith(".zip"))


def members(
    archive: Path,
    folder: Path,
    zone: tzinfo = UTC,
    *,
    unpacks: Callable[[str], bool] = lambda name: True,
    name: str = "",
    depth: int = 1,
) -> Iterator[Member]:
    """Yield the regular files of an archive, each in `folder` until the next one is asked for.

    A member is unpacked only if `unpacks` says so of its name, or it may be an archive itself.
    `zone` is that of times in zips without a field of UTC, `name` what an archive within another
    is called there. SourceError where the archive breaks off, after the members it gave.
    """
    place = folder / f"member{depth}"
    is_zip = (name or archive.name).lower().endswith(".zip")
    try:
        inside = partial(_is_wanted, unpacks=unpacks)
        read = _of_zip(archive, place, zone, inside) if is_zip else _of_tar(archive, place, inside)
        for member in read:
            if member.problem is None and _is_inner(member):
                if depth == _DEEPEST:
                    yield replace(member, problem="archives inside one another: unpack them")
                    continue
                for inner in members(
                    place, folder, zone, unpacks=unpacks, name=member.name, depth=depth + 1
                ):
                    yield replace(inner, name=f"{member.name}/{inner.name.lstrip('/')}")
            else:
                yield member
    finally:
        place.unlink(missing_ok=True)


def _is_inner(member: Member) -> bool:
    """Say whether a member is an archive itself; its name tells before its bytes are looked at."""
    if not _may_be_inner(member.name):
        return False
    try:
        with open_plain(member.path) as stream:
            return is_archive(stream.read(512), member.name.lower())
    except (SourceError, *BROKEN):
        return False


def _may_be_inner(name: str) -> bool:
    lower = name.lower()
    return ".t" in lower or lower.endswith(".zip")


def _is_wanted(name: str, *, unpacks: Callable[[str], bool]) -> bool:
    return _may_be_inner(name) or unpacks(name)


def _of_zip(
    archive: Path, place: Path, zone: tzinfo, wanted: Callable[[str], bool]
) -> Iterator[Member]:
    left = archive.stat().st_size * LIMITS.unpacked_ratio + LIMITS.unpacked_free_bytes
    try:
        with zipfile.ZipFile(archive) as zipped:
            for number, entry in enumerate(zipped.infolist()):
                if number >= LIMITS.members:
                    raise SourceError(f"more than {LIMITS.members:,} files: unpack it")
                if entry.is_dir():
                    continue
                problem = _refused(entry.filename)
                if entry.flag_bits & 1:
                    problem = "it needs a password: unpack it"
                if problem is None and wanted(entry.filename):
                    with zipped.open(entry) as source, open_new(place) as file:
                        while piece := source.read(BLOCK):
                            left -= len(piece)
                            if left < 0:
                                raise SourceError("unpacks to far more than logs do: a bomb")
                            file.write(piece)
                yield Member(entry.filename, place, _zip_time(entry, zone), problem)
    except (zipfile.BadZipFile, NotImplementedError, *BROKEN) as error:
        raise SourceError(f"breaks off: {error}") from error


def _zip_time(entry: zipfile.ZipInfo, zone: tzinfo) -> int:
    """Return when a file was changed, in microseconds UTC: a zip has the local time at least."""
    extra = entry.extra
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == _ZIP_UNIX_TIME and size >= 5 and extra[4] & 1:
            return int(struct.unpack_from("<l", extra, 5)[0]) * 1_000_000
        extra = extra[4 + size :]
    try:
        return int(datetime(*entry.date_time, tzinfo=zone).timestamp()) * 1_000_000
    except ValueError:
        return 0


def _of_tar(archive: Path, place: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    with open_plain(archive) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Entry) as tar:
                for number, entry in enumerate(tar):
                    if number >= LIMITS.members:
                        raise SourceError(f"more than {LIMITS.members:,} files: unpack it")
                    # It keeps every one for a look-up that nobody asks for.
                    tar.members.clear()  # type: ignore[attr-defined]
                    if not entry.isfile():
                        continue
                    problem = _problem(entry)
                    if problem is None and wanted(entry.name):
                        with cast(BinaryIO, tar.extractfile(entry)) as source:
                            _copy(source, place)
                    yield Member(entry.name, place, _modified_us(entry), problem)
        except (tarfile.TarError, *BROKEN) as error:
            raise SourceError(f"breaks off: {error}") from error


class _Entry(tarfile.TarInfo):
    """The header of a file, refused where its names and attributes alone would fill memory."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        """Go on as tarfile does, after a look at the length of what is read into memory."""
        if self.type in _IN_MEMORY and self.size > LIMITS.member_header_bytes:
            raise tarfile.ReadError(f"names longer than {in_mib(LIMITS.member_header_bytes)}")
        return super()._proc_member(tar)  # type: ignore[misc,no-any-return]


def _problem(entry: tarfile.TarInfo) -> str | None:
    if entry.issparse():
        return "a sparse file: refused"
    return _refused(entry.name)


def _refused(name: str) -> str | None:
    """Say why a member of this name is not read, None if it may be."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        return "its path leads out of the archive: refused"
    if is_private(path):
        return "a private file by its name: not read"
    return None


def _modified_us(entry: tarfile.TarInfo) -> int | None:
    """Return when the file was last changed; None for what is no time, as PAX headers may hold."""
    # Not so for NaN, which is in no order.
    return int(entry.mtime * 1_000_000) if 0 <= entry.mtime * 1_000_000 <= LATEST_US else None


def _copy(source: BinaryIO, place: Path) -> None:
    with open_new(place) as file:
        while piece := source.read(BLOCK):
            try:
                file.write(piece)
            except OSError as error:
                raise StoreError(f"store: {place}: {error.strerror or error}") from error
