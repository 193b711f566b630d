"""Opening an input: decompression, bounded blocks of whole lines, and digests.

Memory is bounded by the block, never by the file: a line longer than `LONGEST_LINE` is counted
and passed over.
"""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import xxhash

BLOCK = 4 << 20
LONGEST_LINE = 1 << 20
HEAD = 1 << 20
TAIL = 1 << 18
_NEWLINE = 10

# What the decompressors raise when a file ends early or holds garbage.
BROKEN = (EOFError, OSError, lzma.LZMAError, zlib.error)

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


class SourceError(Exception):
    """An input that cannot be read, or not to its end; the text says why."""


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines as bytes, the number of the first one, and the overlong lines left out."""

    first: int
    data: bytes
    overlong: tuple[int, ...] = ()


def compression_of(path: Path) -> str | None:
    """Return gzip, bzip2, xz or zstd by the first bytes, None for plain files."""
    try:
        with path.open("rb") as file:
            head = file.read(6)
    except OSError as error:
        raise SourceError(f"cannot be opened: {error.strerror}") from error
    return next((name for magic, name in _MAGIC if head.startswith(magic)), None)


def open_plain(path: Path) -> BinaryIO:
    """Open a file, decompressing it as its first bytes say."""
    compression = compression_of(path)
    if compression == "gzip":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if compression == "bzip2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    if compression == "xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    if compression == "zstd":
        import pyarrow as pa

        return cast(BinaryIO, pa.input_stream(str(path), compression="zstd"))
    return path.open("rb")


def read_ends(path: Path) -> bytes:
    """Return the first bytes and, of a plain file, the last ones: what recognition looks at.

    Of a compressed file that breaks off, what it still gives; SourceError if that is nothing.
    """
    head = bytearray()
    with open_plain(path) as stream:
        try:
            while len(head) < HEAD and (piece := stream.read(1 << 16)):
                head += piece
        except BROKEN as error:
            if not head:
                raise SourceError(f"cannot be decompressed: {error}") from error
            return bytes(head)
        size = path.stat().st_size
        if len(head) < HEAD or compression_of(path) is not None:
            return bytes(head)
        stream.seek(max(size - TAIL, HEAD))
        return bytes(head) + b"\n" + stream.read(TAIL)


def digest(path: Path, length: int | None = None) -> str:
    """Digest the bytes on disk, all of them or the first `length`."""
    hasher = xxhash.xxh3_128()
    left = length
    with path.open("rb") as file:
        while piece := file.read(BLOCK if left is None else min(BLOCK, left)):
            hasher.update(piece)
            if left is not None:
                left -= len(piece)
    return hasher.hexdigest()


def line_blocks(stream: BinaryIO) -> Iterator[LineBlock]:
    """Cut a stream into blocks of whole lines; the last line may lack its newline.

    Raises SourceError where the stream breaks off (truncated gzip), after what it gave.
    """
    number = 1
    rest = b""
    broken: Exception | None = None
    while broken is None:
        piece, broken = _read_block(stream)
        if not piece:
            break
        end = piece.rfind(b"\n") + 1
        if end == 0:
            rest = _bounded(rest + piece)
            continue
        data, rest = rest + piece[:end], piece[end:]
        yield _without_overlong(number, data)
        number += data.count(b"\n")
    if rest:
        yield _without_overlong(number, rest)
    if broken is not None:
        raise SourceError(f"breaks off: {broken}") from broken


def _read_block(stream: BinaryIO) -> tuple[bytes, Exception | None]:
    """Read about a block; a decompressor that fails still gives what came before."""
    parts: list[bytes] = []
    size = 0
    read = getattr(stream, "read1", stream.read)
    try:
        while size < BLOCK and (part := read(BLOCK - size)):
            parts.append(part)
            size += len(part)
    except BROKEN as error:
        return b"".join(parts), error
    return b"".join(parts), None


def _bounded(rest: bytes) -> bytes:
    """Keep only the head of a line that is overlong anyway."""
    return rest if len(rest) <= 2 * LONGEST_LINE else rest[: 2 * LONGEST_LINE]


def _without_overlong(number: int, data: bytes) -> LineBlock:
    if len(data) <= LONGEST_LINE:
        return LineBlock(number, data)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
    if np.diff(ends, prepend=-1, append=len(data)).max() <= LONGEST_LINE:
        return LineBlock(number, data)
    lines = data.split(b"\n")
    overlong = tuple(number + i for i, line in enumerate(lines) if len(line) > LONGEST_LINE)
    kept = b"\n".join(b"" if len(line) > LONGEST_LINE else line for line in lines)
    return LineBlock(number, kept, overlong)
