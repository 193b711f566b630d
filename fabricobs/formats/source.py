"""Opening an input: decompression, bounded blocks of whole lines, and digests.

Memory is bounded by the block, never by the file: a line longer than `LONGEST_LINE` is counted
and passed over.
"""

import bz2
import codecs
import errno
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, AnyStr, BinaryIO, cast

import numpy as np
import xxhash
from isal import igzip
from isal.igzip_lib import IsalError
from numpy.typing import NDArray

from fabricobs import stopping
from fabricobs.formats.limits import LIMITS, in_mib

BLOCK = 4 << 20
LONGEST_LINE = LIMITS.line_bytes
# What recognition looks at: the beginning, the end, and slices in between.
HEAD = 1 << 18
TAIL = 1 << 16
_SLICES = 4
_SLICE = 1 << 15
_NEWLINE = 10
_COLOURS = r"\x1b\[[0-9;]*[A-Za-z]"
_COLOURS_OF_TEXT, _COLOURS_OF_BYTES = re.compile(_COLOURS), re.compile(_COLOURS.encode())
_LOOKED_BACK = 1 << 16
_DIGESTED = 1 << 18
# What may be read beyond the end of a text: the matcher looks at many bytes at a time.
MARGIN = 64

# What the decompressors raise when a file ends early or holds garbage. (isal's stub says that its
# error is an instance.)
BROKEN = (EOFError, OSError, lzma.LZMAError, cast(type[Exception], IsalError), zlib.error)

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
_LONGEST_MAGIC = max(len(magic) for magic, _ in _MAGIC)
# Byte order marks; that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# The pieces of a rotated text have no mark; its first characters show where the zeros stand.
_UNMARKED = (
    (re.compile(rb"(?:[\t\r\n -~]\0){4}"), "utf-16-le"),
    (re.compile(rb"(?:\0[\t\r\n -~]){4}"), "utf-16-be"),
)
_HEAD_BYTES = 8


class SourceError(Exception):
    """An input that cannot be read, or not to its end; the text says why."""


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines as bytes, the number of the first one, and the overlong lines left out."""

    first: int
    data: bytes
    overlong: tuple[int, ...] = ()


def without_colours(text: AnyStr) -> AnyStr:
    """Take escape sequences of colours and of clearing out of a text."""
    if isinstance(text, bytes):
        return _COLOURS_OF_BYTES.sub(b"", text) if b"\x1b" in text else text
    return _COLOURS_OF_TEXT.sub("", text) if "\x1b" in text else text


def numbered_texts(block: LineBlock) -> Iterator[tuple[int, str]]:
    """Yield the lines of a block with their numbers, without colours and overlong ones."""
    lines = without_colours(block.data.decode("utf-8", "replace")).split("\n")
    if not lines[-1]:
        lines.pop()
    left_out = frozenset(block.overlong)
    yield from ((n, line) for n, line in enumerate(lines, block.first) if n not in left_out)


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
    most = path.stat().st_size * LIMITS.unpacked_ratio + LIMITS.unpacked_free_bytes
    stream = _decompressed(path, compression)
    return cast(BinaryIO, io.BufferedReader(_Bounded(stream, most, path)))


def open_text(path: Path) -> BinaryIO:
    """Open a file, decompressed, as UTF-8 without a byte order mark.

    UTF-16 and UTF-32 are known by their byte order mark, UTF-16 without one by the zeros of its
    first four characters; what no character is written as becomes U+FFFD.
    """
    stream = open_plain(path)
    try:
        head = cast(io.BufferedReader, stream).peek(_HEAD_BYTES)
    except BROKEN:
        stream.close()
        return open_plain(path)  # who reads it meets the same error
    mark, encoding = next((m for m in _MARKS if head.startswith(m[0])), (b"", None))
    if encoding is None:
        encoding = next((name for found, name in _UNMARKED if found.match(head)), "utf-8")
    if encoding == "utf-8":
        stream.read(len(mark))
        return stream
    return cast(BinaryIO, io.BufferedReader(_AsUtf8(stream, encoding)))


class _AsUtf8(io.RawIOBase):
    """A text in another encoding as UTF-8."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._text = io.TextIOWrapper(stream, encoding, errors="replace", newline="")

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer, of at least 4 bytes: no character takes more."""
        piece = self._text.read(len(buffer) // 4).encode()
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the stream below."""
        self._text.close()
        super().close()


def is_plain(stream: BinaryIO) -> bool:
    """Say whether a stream is the file itself."""
    return isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO)


def _decompressed(path: Path, compression: str) -> BinaryIO:
    if compression == "gzip":
        return cast(BinaryIO, igzip.IGzipFile(path, "rb"))
    if compression == "bzip2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    if compression == "xz":
        return cast(BinaryIO, io.BufferedReader(_Xz(path)))
    import pyarrow as pa

    # It refuses frames that ask for a window of more than 128 MiB by itself.
    return cast(BinaryIO, pa.input_stream(str(path), compression="zstd"))


class _Xz(io.RawIOBase):
    """An xz file unpacked within a bound of memory, which Python's own reader lacks."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._unpacker = _xz_unpacker()
        self._rest = b""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer; LZMAError if it asks for too much memory, EOFError if cut off."""
        while True:
            if self._unpacker.eof:
                # Streams may follow one another, with zeros between them.
                self._rest = (self._unpacker.unused_data or self._file.read(BLOCK)).lstrip(b"\0")
                if not self._rest:
                    return 0
                self._unpacker = _xz_unpacker()
            elif self._unpacker.needs_input:
                self._rest = self._file.read(_LOOKED_BACK)
                if not self._rest:
                    raise EOFError("the xz stream ends early")
            piece = self._unpacker.decompress(self._rest, len(buffer))
            self._rest = b""
            if piece:
                buffer[: len(piece)] = piece
                return len(piece)

    def close(self) -> None:
        """Close the file below."""
        self._file.close()
        super().close()


def _xz_unpacker() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=LIMITS.decompressor_bytes)


class _Bounded(io.RawIOBase):
    """A decompressed stream that ends in an error where no log would have come so far."""

    def __init__(self, stream: BinaryIO, most: int, path: Path) -> None:
        self._path = path
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
        try:
            piece = self._read(len(buffer))
        except BROKEN:
            if not isinstance(self._stream, igzip.IGzipFile):
                raise
            piece = self._salvaged(len(buffer))
        self._left -= len(piece)
        if self._left < 0:
            raise OSError(f"unpacks to more than {in_mib(self._most)}: refused as a bomb")
        buffer[: len(piece)] = piece
        return len(piece)

    def _salvaged(self, size: int) -> bytes:
        """Go on with zlib: it gives the last of a broken file, of which isal gives nothing."""
        self._stream.close()
        slower = gzip.GzipFile(self._path)
        self._stream, self._read = cast(BinaryIO, slower), slower.read1
        slower.seek(self._most - self._left)
        return slower.read1(size)

    def close(self) -> None:
        """Close the stream below."""
        self._stream.close()
        super().close()


def read_ends(path: Path) -> bytes:
    """Return the first bytes and, of a plain file, slices and the last ones, for recognition.

    Of a compressed file that breaks off, what it still gives; SourceError if that is nothing.
    """
    head = bytearray()
    _refuse_holes(path)
    with open_text(path) as stream:
        try:
            while len(head) < HEAD and (piece := stream.read(1 << 16)):
                head += piece
        except BROKEN as error:
            if not head:
                raise SourceError(f"cannot be decompressed: {error}") from error
            return bytes(head)
        if len(head) < HEAD or not is_plain(stream):
            return bytes(head)
        size = path.stat().st_size
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
        raise SourceError(f"longer than {in_mib(most_bytes)}")
    return data


def _refuse_holes(path: Path) -> None:
    """Raise SourceError for a sparse file: parts that nobody wrote take time and say nothing."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise SourceError(f"cannot be opened: {error.strerror}") from error
    try:
        holes = _holes(file)
    finally:
        os.close(file)
    if holes > LIMITS.hole_bytes:
        raise SourceError(f"sparse: has holes of more than {in_mib(LIMITS.hole_bytes)}")


def _holes(file: int) -> int:
    """Return how many bytes of a file nobody wrote, counted until they are too many."""
    size = os.fstat(file).st_size
    holes = at = 0
    while at < size and holes <= LIMITS.hole_bytes:
        try:
            data = os.lseek(file, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                break  # a file system that knows no holes
            data = size
        holes += data - at
        at = os.lseek(file, data, os.SEEK_HOLE) if data < size else size
    return holes


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


def line_blocks(stream: BinaryIO) -> Iterator[LineBlock]:
    """Cut a stream into blocks of whole lines; the last line may lack its newline.

    Raises SourceError where the stream breaks off (truncated gzip), after what it gave.
    """
    number = 1
    for buffer, length in whole_lines(stream):
        block, lines = _without_overlong(number, buffer[:length].tobytes())
        yield block
        number += lines


def whole_lines(stream: BinaryIO) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Yield a buffer and how many of its bytes are the next whole lines.

    It is the same buffer each time: what is in it holds until the next is asked for. `MARGIN`
    bytes follow that may be read and written. The last line may lack its newline; of an overlong
    one the end may be missing. Raises SourceError as `line_blocks` does.
    """
    buffer = np.empty(BLOCK + 2 * LONGEST_LINE + MARGIN, np.uint8)
    view = buffer.data
    rest = 0
    broken: Exception | None = None
    while broken is None:
        stopping.check()
        read, broken = _read_into(stream, view[rest : rest + BLOCK])
        if read == 0:
            break
        length = rest + read
        end = _after_last_newline(view, rest, length)
        if end:
            yield buffer, end
            rest = length - end
            buffer[:rest] = buffer[end:length].copy()
        else:
            # Only the head of a line that is overlong anyway is kept.
            rest = min(length, 2 * LONGEST_LINE)
    if rest:
        yield buffer, rest
    if broken is not None:
        raise SourceError(f"breaks off: {broken}") from broken


def _after_last_newline(view: memoryview, begin: int, end: int) -> int:
    """Return what follows the last newline between two places, 0 if there is none."""
    while end > begin:
        start = max(begin, end - _LOOKED_BACK)
        found = bytes(view[start:end]).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _read_into(stream: BinaryIO, room: memoryview) -> tuple[int, Exception | None]:
    """Fill the room as far as the stream goes; one that fails still gives what came before."""
    if is_plain(stream):
        return cast(io.BufferedReader, stream).readinto(room), None
    size = 0
    read = getattr(stream, "read1", stream.read)
    try:
        while size < len(room) and (part := read(len(room) - size)):
            room[size : size + len(part)] = part
            size += len(part)
    except BROKEN as error:
        return size, error
    return size, None


def _without_overlong(number: int, data: bytes) -> tuple[LineBlock, int]:
    """Return the block of some whole lines, overlong ones emptied, and how many lines end in it."""
    count = int(np.count_nonzero(np.frombuffer(data, np.uint8) == _NEWLINE))
    if not _has_overlong(data):
        return LineBlock(number, data), count
    lines = data.split(b"\n")
    overlong = tuple(number + i for i, line in enumerate(lines) if len(line) > LONGEST_LINE)
    kept = b"\n".join(b"" if len(line) > LONGEST_LINE else line for line in lines)
    return LineBlock(number, kept, overlong), count


def _has_overlong(data: bytes) -> bool:
    at = 0
    while len(data) - at > LONGEST_LINE:
        end = data.rfind(b"\n", at, at + LONGEST_LINE + 1)
        if end < 0:
            return True
        at = end + 1
    return False
