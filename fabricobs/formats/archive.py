"""Tar archives, compressed or not: one member at a time, and nothing written but what is read.

Only regular files with a path inside the archive are unpacked, each for the time it takes to read
it; links and devices carry no log, and a path that leads outside is refused.
"""

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from fabricobs.formats.source import BLOCK, BROKEN, SourceError, open_plain

_MAGIC = b"ustar"
_MAGIC_AT = 257


@dataclass(frozen=True, slots=True)
class Member:
    """A file of an archive, unpacked at `path`; or why it is not (`problem`)."""

    name: str
    path: Path
    modified_us: int
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
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for entry in tar:
                    if not entry.isfile():
                        continue
                    problem = _problem(entry)
                    if problem is None:
                        with cast(BinaryIO, tar.extractfile(entry)) as source:
                            _copy(source, place)
                    yield Member(entry.name, place, int(entry.mtime * 1_000_000), problem)
        except (tarfile.TarError, *BROKEN) as error:
            raise SourceError(f"breaks off: {error}") from error
        finally:
            place.unlink(missing_ok=True)


def _problem(entry: tarfile.TarInfo) -> str | None:
    path = PurePosixPath(entry.name)
    if path.is_absolute() or ".." in path.parts or "\0" in entry.name:
        return "its path leads out of the archive: refused"
    if entry.issparse():
        return "a sparse file: refused"
    return None


def _copy(source: BinaryIO, place: Path) -> None:
    with place.open("wb") as file:
        while piece := source.read(BLOCK):
            file.write(piece)
