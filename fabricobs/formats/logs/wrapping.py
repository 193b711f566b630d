"""Lines that a container or log service wrapped one by one: unwrapped before any format sees them.

A wrapped line becomes `time text`, so the time is found where a launcher's or NCCL's own would be.
Every line stays one line: the first pieces of a line cut in pieces become empty ones.
"""

import json
import re
from collections.abc import Iterator
from typing import Literal

from fabricobs.formats.source import LineBlock

Wrapping = Literal["", "json", "cri"]

# Docker's json-file, Kubernetes' structured logs, Google Cloud.
_TEXT_KEYS = ("log", "message", "msg", "textPayload")
_TIME_KEYS = ("time", "timestamp", "ts", "@timestamp")
_CRI = re.compile(rb"^(\d{4}-\d\d-\d\dT\S+) (stdout|stderr) ([FP]) ?(.*)$", re.DOTALL)
_LOOKED_AT = 5


def wrapping_of(head: bytes) -> Wrapping:
    """Say how the lines of a text are wrapped, from its first ones; '' if they are not."""
    begin = head[:65536].lstrip()[:1]
    if begin != b"{" and not begin.isdigit():
        return ""
    lines = [line for line in head[:65536].split(b"\n", 50)[:50] if line.strip()][:_LOOKED_AT]
    if lines and all(_CRI.match(line.rstrip(b"\r")) for line in lines):
        return "cri"
    whole = lines[:-1] or lines
    if whole and all(_from_json(line) is not None for line in whole):
        return "json"
    return ""


def unwrapped(blocks: Iterator[LineBlock], wrapping: Wrapping) -> Iterator[LineBlock]:
    """Unwrap the lines of a text; as many lines come out as went in."""
    if not wrapping:
        yield from blocks
        return
    pieces: dict[bytes, bytes] = {}
    for block in blocks:
        yield LineBlock(block.first, unwrap(block.data, wrapping, pieces), block.overlong)


def unwrap(data: bytes, wrapping: Wrapping, pieces: dict[bytes, bytes]) -> bytes:
    """Unwrap whole lines; `pieces` holds the begun ones by stream. What is not wrapped stays."""
    lines = data.split(b"\n")
    if wrapping == "json":
        return b"\n".join(_unwrapped_json(line) for line in lines)
    return b"\n".join(_unwrapped_cri(line, pieces) for line in lines)


def _unwrapped_json(line: bytes) -> bytes:
    found = _from_json(line)
    return line if found is None else found


def _from_json(line: bytes) -> bytes | None:
    if not line.startswith(b"{"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    text = next((record[key] for key in _TEXT_KEYS if isinstance(record.get(key), str)), None)
    if text is None:
        return None
    time = next((record[key] for key in _TIME_KEYS if isinstance(record.get(key), str)), "")
    flat = " ".join(text.splitlines())
    return (
        f"{time} {flat}".encode("utf-8", "replace")
        if time and flat
        else flat.encode("utf-8", "replace")
    )


def _unwrapped_cri(line: bytes, pieces: dict[bytes, bytes]) -> bytes:
    found = _CRI.match(line)
    if found is None:
        return line
    time, stream, tag, text = found.groups()
    if tag == b"P":
        pieces[stream] = pieces.get(stream, b"") + text
        return b""
    whole = pieces.pop(stream, b"") + text
    return time + b" " + whole if whole.strip() else b""
