"""Digests of files and of their beginnings, which tell what is new, grown or a copy."""

from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import xxhash

from fabricobs import stopping
from fabricobs.formats.decompression import BROKEN, SourceError, is_plain, open_plain
from fabricobs.formats.limits import LIMITS

_DIGESTED = 1 << 18


def digest(path: Path, length: int | None = None) -> str:
    """Digest the bytes on disk, all of them or the first `length`."""
    hasher = xxhash.xxh3_128()
    left = length
    room = memoryview(bytearray(_DIGESTED))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(room if left is None else room[:left]):
            stopping.check()
            hasher.update(room[:size])
            if left is not None:
                left -= size
    return hasher.hexdigest()


def prefix_digests(path: Path, lengths: Collection[int]) -> tuple[dict[int, str], int | None]:
    """Digest the first bytes of what a file holds, decompressed, for each length it reaches.

    The second value is how many bytes it holds, None if more than the longest of the lengths.
    """
    hasher = xxhash.xxh3_128()
    digests: dict[int, str] = {}
    done = 0
    with open_plain(path) as stream:
        for length in sorted(set(lengths)):
            while done < length and (piece := _piece(stream, min(_DIGESTED, length - done))):
                hasher.update(piece)
                done += len(piece)
            if done < length:
                return digests, done
            digests[length] = hasher.hexdigest()
        return digests, None if _piece(stream, 1) else done


def begins_with(path: Path, start: Path) -> int:
    """Return how many bytes `start` holds if `path` begins with all of them, both decompressed.

    0 if it does not, or cannot be read.
    """
    done = 0
    try:
        with open_plain(path) as whole, open_plain(start) as stream:
            while piece := _piece(stream, _DIGESTED):
                if _exactly(whole, len(piece)) != piece:
                    return 0
                done += len(piece)
    except (SourceError, *BROKEN):
        return 0
    return done


def _exactly(stream: BinaryIO, size: int) -> bytes:
    """Read so many bytes, fewer at the end."""
    data = bytearray()
    while len(data) < size and (piece := _piece(stream, size - len(data))):
        data += piece
    return bytes(data)


def _piece(stream: BinaryIO, most: int) -> bytes:
    """Read some bytes, none at the end; a compressed stream that breaks off ends there."""
    stopping.check()
    try:
        return stream.read(most)
    except BROKEN:
        if is_plain(stream):
            raise
        return b""


def digest_of_unknown(path: Path, ends: bytes) -> str:
    """Digest a file of no known format: of a long one what is looked at, size and last change."""
    stat = path.stat()
    if stat.st_size <= LIMITS.unknown_bytes:
        return digest(path, stat.st_size or None)
    return xxhash.xxh3_128_hexdigest(ends + f"{stat.st_size} {stat.st_mtime_ns}".encode())
