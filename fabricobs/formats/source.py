"""Opening an input: decompression, bounded blocks of whole lines, and digests.

Memory is bounded by the block, never by the file: a line longer than `LONGEST_LINE` is counted
and passed over.
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import xxhash

BLOCK = 4 << 20
LONGEST_LINE = 1 << 20
# What recognition looks at: the beginning, the end, and slices in between.
HEAD = 1 << 18
TAIL = 1 << 16
_SLICES = 4
_SLICE = 1 << 15
# gzip cannot do better than 1032:1, and does so on one byte repeated; logs reach 100:1.
_LARGEST_RATIO = 500
_FREE_BYTES = 64 << 20
_NEWLINE = 10

# What the decompressors raise when a file ends early or holds garbage.
BROKEN = (EOFError, OSError, lzma.LZMAError, zlib.error)

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
_LONGEST_MAGIC = max(len(magic) for magic, _ in _MAGIC)


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
            return _compression(file.read(_LONGEST_MAGIC))
    except OSError as error:
        raise SourceError(f"cannot be opened: {error.strerror}") from error


def _compression(head: bytes) -> str | None:
    return next((name for magic, name in _MAGIC if head.startswith(magic)), None)


def open_plain(path: Path) -> BinaryIO:
    """Open a file, decompressing it as its first bytes say."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise SourceError(f"cannot be opened: {error.strerror}") from error
    compression = _compression(file.peek(_LONGEST_MAGIC))
    if compression is None:
        return file
    file.close()
    most = path.stat().st_size * _LARGEST_RATIO + _FREE_BYTES
    return cast(BinaryIO, io.BufferedReader(_Bounded(_decompressed(path, compression), most)))


def _decompressed(path: Path, compression: str) -> BinaryIO:
    if compression == "gzip":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if compression == "bzip2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    if compression == "xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    import pyarrow as pa

    return cast(BinaryIO, pa.input_stream(str(path), compression="zstd"))


class _Bounded(io.RawIOBase):
    """A decompressed stream that ends in an error where no log would have come so far."""

    def __init__(self, stream: BinaryIO, most: int) -> None:
        self._stream = stream
        # What a broken stream still holds comes out in small pieces.
        self._read = getattr(stream, "read1", stream.read)
        self._most = most
        self._left = most

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer; OSError beyond the bound."""
        piece = self._read(len(buffer))
        self._left -= len(piece)
        if self._left < 0:
            raise OSError(f"unpacks to more than {self._most >> 20} MiB: refused as a bomb")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the stream below."""
        self._stream.close()
        super().close()


def read_ends(path: Path) -> bytes:
    """Return the first bytes and, of a plain file, slices and the last ones, for recognition.

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
        parts = [bytes(head)]
        if size > HEAD + TAIL + _SLICES * _SLICE:
            for number in range(1, _SLICES + 1):
                stream.seek(HEAD + (size - HEAD - TAIL) * number // (_SLICES + 1))
                parts.append(stream.read(_SLICE))
        stream.seek(max(size - TAIL, HEAD))
        parts.append(stream.read(TAIL))
        return b"\n".join(parts)


def read_document(stream: BinaryIO, most_bytes: int) -> bytes:
    """Read a stream that has to be in memory; SourceError if it breaks off or is far too long."""
    try:
        data = stream.read(most_bytes + 1)
    except BROKEN as error:
        raise SourceError(f"breaks off: {error}") from error
    if len(data) > most_bytes:
        raise SourceError(f"longer than {most_bytes >> 20} MiB")
    return data


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
        data = b"".join((rest, memoryview(piece)[:end]))
        rest = piece[end:]
        block, lines = _without_overlong(number, data)
        yield block
        number += lines
    if rest:
        yield _without_overlong(number, rest)[0]
    if broken is not None:
        raise SourceError(f"breaks off: {broken}") from broken


def _read_block(stream: BinaryIO) -> tuple[bytes, Exception | None]:
    """Read about a block; a decompressor that fails still gives what came before."""
    if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
        return stream.read(BLOCK), None
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


def _without_overlong(number: int, data: bytes) -> tuple[LineBlock, int]:
    """Return the block of some whole lines, overlong ones emptied, and how many lines end in it."""
    if len(data) <= LONGEST_LINE:
        return LineBlock(number, data), data.count(b"\n")
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
    if np.diff(ends, prepend=-1, append=len(data)).max() <= LONGEST_LINE:
        return LineBlock(number, data), len(ends)
    lines = data.split(b"\n")
    overlong = tuple(number + i for i, line in enumerate(lines) if len(line) > LONGEST_LINE)
    kept = b"\n".join(b"" if len(line) > LONGEST_LINE else line for line in lines)
    return LineBlock(number, kept, overlong), len(ends)
