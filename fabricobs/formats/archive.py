"""Tar archives, compressed or not: one member at a time, and nothing written but what is read.

Only regular files with a path inside the archive are unpacked, each for the time it takes to read
it; links and devices carry no log, and a path that leads outside is refused.
"""

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from fabricobs.formats.limits import LIMITS, in_mib
from fabricobs.formats.private_files import is_private
from fabricobs.formats.source import BLOCK, BROKEN, SourceError, open_plain
from fabricobs.formats.values import LATEST_US
from fabricobs.store.manifest import StoreError

_MAGIC = b"ustar"
_MAGIC_AT = 257
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


def is_archive(head: bytes) -> bool:
    """Say whether the first (decompressed) bytes are those of a tar archive."""
    return head[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] == _MAGIC


def members(archive: Path, folder: Path) -> Iterator[Member]:
    """Yield the regular files of an archive, each in `folder` until the next one is asked for.

    SourceError where the archive breaks off, after the members it gave.
    """
    place = folder / "member"
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
                    if problem is None:
                        with cast(BinaryIO, tar.extractfile(entry)) as source:
                            _copy(source, place)
                    yield Member(entry.name, place, _modified_us(entry), problem)
        except (tarfile.TarError, *BROKEN) as error:
            raise SourceError(f"breaks off: {error}") from error
        finally:
            place.unlink(missing_ok=True)


class _Entry(tarfile.TarInfo):
    """The header of a file, refused where its names and attributes alone would fill memory."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        """Go on as tarfile does, after a look at the length of what is read into memory."""
        if self.type in _IN_MEMORY and self.size > LIMITS.member_header_bytes:
            raise tarfile.ReadError(f"names longer than {in_mib(LIMITS.member_header_bytes)}")
        return super()._proc_member(tar)  # type: ignore[misc,no-any-return]


def _problem(entry: tarfile.TarInfo) -> str | None:
    path = PurePosixPath(entry.name)
    if path.is_absolute() or ".." in path.parts or "\0" in entry.name:
        return "its path leads out of the archive: refused"
    if is_private(path):
        return "a private file by its name: not read"
    if entry.issparse():
        return "a sparse file: refused"
    return None


def _modified_us(entry: tarfile.TarInfo) -> int | None:
    """Return when the file was last changed; None for what is no time, as PAX headers may hold."""
    # Not so for NaN, which is in no order.
    return int(entry.mtime * 1_000_000) if 0 <= entry.mtime * 1_000_000 <= LATEST_US else None


def _copy(source: BinaryIO, place: Path) -> None:
    with place.open("wb") as file:
        while piece := source.read(BLOCK):
            try:
                file.write(piece)
            except OSError as error:
                raise StoreError(f"store: {place}: {error.strerror or error}") from error
