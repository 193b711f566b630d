"""TensorBoard event files: TFRecord frames with checksums, each a small protobuf message.

Six fields are read, so the decoder is here: TensorBoard itself would bring a web server along. A
record counts as a line; the last one may be half written.
"""

import struct
from collections.abc import Iterator

import google_crc32c

from fabricobs.formats.decompression import SourceError
from fabricobs.formats.limits import LIMITS, in_mib
from fabricobs.formats.readers.scalars import Scalars
from fabricobs.formats.whole import WholeFile

_PIECE = 1 << 20
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# A field's number, and its value: an integer, or the bytes of anything else.
Field = tuple[int, int | bytes]
# TensorFlow's types that a metric may have, with their layout.
_LAYOUTS = {1: "<f", 2: "<d", 3: "<i", 9: "<q"}
_VALUES = {5: "<f", 6: "<d"}
_WHOLE_VALUES = {7, 10}


def read_tensorboard(file: WholeFile) -> None:
    """Read one event file; SourceError where its frames are lost, after what they gave."""
    scalars = Scalars(file)
    try:
        for line, record in enumerate(_records(file), 1):
            if record is None:
                file.miss(line, "checksum does not fit", "")
                continue
            try:
                used = _read_event(record, line, scalars)
            except (ValueError, struct.error) as error:
                file.miss(line, str(error), "")
                continue
            if used:
                file.tally.read()
            else:
                file.tally.skip()
    finally:
        scalars.finish()


def _records(file: WholeFile) -> Iterator[bytes | None]:
    """Yield records; None for one whose checksum does not fit."""
    buffer = b""
    number = 1
    for piece in file.pieces(_PIECE):
        buffer += piece
        at = 0
        while len(buffer) - at >= 12:
            header = buffer[at : at + 8]
            if not _fits(header, buffer[at + 8 : at + 12]):
                file.miss(number, "length is damaged", "")
                raise SourceError("no record follows: its length is damaged")
            (length,) = struct.unpack("<Q", header)
            if length > LIMITS.record_bytes:
                raise SourceError(f"a record longer than {in_mib(LIMITS.record_bytes)}")
            end = at + 12 + length + 4
            if end > len(buffer):
                break
            record = buffer[at + 12 : end - 4]
            yield record if _fits(record, buffer[end - 4 : end]) else None
            number += 1
            at = end
        buffer = buffer[at:]
    if buffer:
        file.miss(number, "the last record is not complete", "")


def _fits(data: bytes, checksum: bytes) -> bool:
    crc: int = google_crc32c.value(data)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return checksum == struct.pack("<I", masked)


def _read_event(record: bytes, line: int, scalars: Scalars) -> bool:
    ts: float | None = None
    step = 0
    used = False
    values: list[bytes] = []
    for number, value in _fields(record):
        if number == 1 and isinstance(value, bytes):
            ts = struct.unpack("<d", value)[0] * 1_000_000
        elif number == 2 and isinstance(value, int):
            step = _signed(value)
        elif number == 5 and isinstance(value, bytes):
            values = [v for n, v in _fields(value) if n == 1 and isinstance(v, bytes)]
    for part in values:
        tag, number_given = _value(part)
        if number_given is not None:
            used |= scalars.add(line, tag, number_given, step, ts)
    return used


def _value(data: bytes) -> tuple[str, float | None]:
    """Return tag and number; no number for histograms, images and text."""
    tag, found = "", None
    for number, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            tag = value.decode("utf-8", "replace")
        elif number == 2 and len(value) == 4:
            found = struct.unpack("<f", value)[0]
        elif number == 8:
            found = _tensor(value)
    return tag, found


def _tensor(data: bytes) -> float | None:
    """Return the number a tensor without dimensions holds."""
    fields = list(_fields(data))
    kind = next((value for number, value in fields if number == 1), 0)
    for number, value in fields:
        if number == 2 and any(
            n == 2 for n, _ in _fields(value if isinstance(value, bytes) else b"")
        ):
            return None
        if number == 4 and isinstance(kind, int) and isinstance(value, bytes):
            layout = _LAYOUTS.get(kind)
            if layout is not None and len(value) == struct.calcsize(layout):
                return float(struct.unpack(layout, value)[0])
        if number in _VALUES and isinstance(value, bytes):
            layout = _VALUES[number]
            return float(struct.unpack_from(layout, value)[0])
        if number in _WHOLE_VALUES:
            return float(_signed(value if isinstance(value, int) else _varint(value, 0)[0]))
    return None


def _fields(data: bytes) -> Iterator[Field]:
    """Walk a protobuf message; ValueError where it is none."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, at = _varint(data, at)
        elif kind in {_FIXED64, _FIXED32}:
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"no protobuf message: wire type {kind}")
        if at + length > len(data):
            raise ValueError("protobuf message ends early")
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("protobuf message ends early")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at


def _signed(value: int) -> int:
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value
