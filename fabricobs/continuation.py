"""Log rotation: recognise a new file as one known under an earlier name.

Between two looks a log may be renamed, copied and truncated, compressed, or all of it twice. So a
file is compared by what it holds, decompressed, with the files that its name says it was: it
repeats one, it continues one, or it is new. Only files of one directory are compared: two hosts'
logs may begin alike.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from fabricobs.formats.decompression import SourceError
from fabricobs.formats.digests import begins_with, digest, prefix_digests
from fabricobs.remote import local
from fabricobs.store.log import KnownFile

_PACKED = re.compile(r"\.(?:gz|zst|zstd|xz|bz2)$")
# app.log.1, app.log-20250131, app-2025-01-31.log, app.log-1738281600, app.log.old
_ROTATED = re.compile(
    r"(?P<stem>.+?)[.-](?:(?P<number>\d{1,3})"
    r"|20\d\d-?\d\d-?\d\d(?:[-_.T]?\d\d(?:[-:]?\d\d){0,2})?|1\d{9}|old|bak)"
    r"(?P<ending>(?:\.[A-Za-z]\w*)?)"
)


@dataclass(frozen=True, slots=True)
class Repetition:
    """A file whose lines are read from another one, at `path`, in its first `length` bytes."""

    path: str
    length: int


def earlier_names(name: str) -> Iterator[str]:
    """Yield the names a file may have had before it was rotated, the latest first.

    Of `app.log.2.gz`: `app.log.2`, `app.log.1`, `app.log.0`, `app.log`.
    """
    plain = _PACKED.sub("", name)
    if plain != name:
        yield plain
    rotated = _ROTATED.fullmatch(plain)
    if rotated is None:
        return
    stem, ending = rotated["stem"], rotated["ending"]
    separator = plain[len(stem)]
    for number in reversed(range(int(rotated["number"] or 0))):
        yield f"{stem}{separator}{number}{ending}"
    yield stem + ending
    yield from earlier_names(stem + ending)


def live_names(name: str) -> Iterator[str]:
    """Yield the names of the files that one may be a copy of: unpacked, and not rotated."""
    plain = _PACKED.sub("", name)
    if plain != name:
        yield plain
    while (rotated := _ROTATED.fullmatch(plain)) is not None:
        plain = rotated["stem"] + rotated["ending"]
        yield plain


def find_known(
    path: Path, earlier: Collection[KnownFile], kept: Path | None = None
) -> tuple[KnownFile, bool] | None:
    """Return the longest known file that one begins with, and whether it holds no more than that.

    A file that stands where it stood, and may have grown, was not rotated: it is none of them. One
    held by the new file to its end is found all the same: then both hold the same. `kept` is its
    copy on this machine, where there is one.
    """
    lengths = {known.size_bytes for known in earlier if known.size_bytes}
    if not lengths:
        return None
    with local(path, kept) as here:
        digests, length = prefix_digests(here, lengths)
    for known in sorted(earlier, key=lambda known: -known.size_bytes):
        if digests.get(known.size_bytes) != known.content:
            continue
        if known.size_bytes == length:
            return known, True
        if known.repeats is None and not _stands(known):
            return known, False
    return None


def find_live(path: Path, live: Collection[Path], kept: Path | None = None) -> Repetition | None:
    """Return which of some files on disk begins with all that this one holds."""
    for other in live:
        with local(other) as there, local(path, kept) as here:
            length = begins_with(there, here)
        if length:
            return Repetition(str(other), length)
    return None


def _stands(known: KnownFile) -> bool:
    """Say whether a file begins, where it was read, with what it held then."""
    path = Path(known.path)
    try:
        with local(path) as here:
            if here.stat().st_size < known.size_bytes:
                return False
            return digest(here, known.size_bytes) == known.content
    except (OSError, SourceError):
        return False
