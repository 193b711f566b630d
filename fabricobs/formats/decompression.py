"""Opening an input: decompressed within bounds, and as UTF-8."""

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

from isal import igzip
from isal.igzip_lib import IsalError

from fabricobs.formats.limits import LIMITS, in_mib

_READ_AT_ONCE = 1 << 16
_BLOCK = 4 << 20

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
                self._rest = (self._unpacker.unused_data or self._file.read(_BLOCK)).lstrip(b"\0")
                if not self._rest:
                    return 0
                self._unpacker = _xz_unpacker()
            elif self._unpacker.needs_input:
                self._rest = self._file.read(_READ_AT_ONCE)
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
