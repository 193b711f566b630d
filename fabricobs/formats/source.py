"""Reading an input in blocks of whole lines, or its ends for recognition.

Memory is bounded by the block, never by the file: a line longer than `LONGEST_LINE` is counted
and passed over.
"""

import errno
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import AnyStr, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from fabricobs import stopping
from fabricobs.formats.decompression import BROKEN, SourceError, is_plain, open_text
from fabricobs.formats.limits import LIMITS, in_mib

BLOCK = 4 << 20
LONGEST_LINE = LIMITS.line_bytes
# What recognition looks at: the beginning, the end, and slices in between.
HEAD = 1 << 18
TAIL = 1 << 16
_SLICES = 4
_SLICE = 1 << 15
_LOOKED_INTO = 1 << 25  # of a compressed file, whose end cannot be looked at alone
_NEWLINE = 10
_COLOURS = r"\x1b\[[0-9;]*[A-Za-z]"
_COLOURS_OF_TEXT, _COLOURS_OF_BYTES = re.compile(_COLOURS), re.compile(_COLOURS.encode())
_LOOKED_BACK = 1 << 16
# What may be read beyond the end of a text: the matcher looks at many bytes at a time.
MARGIN = 64


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


def read_ends(path: Path) -> bytes:
    """Return the first bytes, slices and the last ones, for recognition.

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
        if len(head) < HEAD:
            return bytes(head)
        if not is_plain(stream):
            return b"\n".join([bytes(head), *_slices_ahead(stream)])
        size = path.stat().st_size
        parts = [bytes(head)]
        if size > HEAD + TAIL + _SLICES * _SLICE:
            for number in range(1, _SLICES + 1):
                stream.seek(HEAD + (size - HEAD - TAIL) * number // (_SLICES + 1))
                parts.append(stream.read(_SLICE))
        stream.seek(max(size - TAIL, HEAD))
        parts.append(stream.read(TAIL))
        return b"\n".join(parts)


def _slices_ahead(stream: BinaryIO) -> list[bytes]:
    """Return slices of what is left of a compressed stream, evenly apart, and its end."""
    kept: list[bytes] = []
    last, every = b"", 1
    try:
        for number in range(_LOOKED_INTO // TAIL):
            piece = stream.read(TAIL)
            if not piece:
                break
            last = piece
            if number % every == 0:
                kept.append(piece[:_SLICE])
            if len(kept) > 2 * _SLICES:
                kept, every = kept[::2], 2 * every
    except BROKEN:
        pass  # what it gave tells its formats; reading says that it breaks off
    return [*kept, last]


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
        stat = path.stat()
        if stat.st_size <= LIMITS.hole_bytes:
            return
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
