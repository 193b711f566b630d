"""Prefixes of messages, parsed once for each distinct text; only the times in it differ."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.context import LineTold
from fabricobs.formats.logs.lines import LineReader
from fabricobs.formats.logs.prefixes import NOTHING, Told, before_message, strip_prefix
from fabricobs.formats.values import Unfit

Wide = NDArray[np.int64]
_QUARTER_US = 15 * 60 * 1_000_000
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The time that stands in a prefix: where, and in microseconds of its own zone."""

    begin: int
    end: int
    local_us: int


@dataclass(slots=True)
class Prefix:
    """What a prefix tells: around the line, and by the anchor of each format that takes it.

    `shift` is what its time is behind the one it prints, None if the time is the same in all rows;
    `in_zone` says that the file's zone decides it.
    """

    around: Told
    anchored: dict[int, dict[str, Any]]
    shift: int | None = None
    in_zone: bool = False
    columns: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)


def judge(raw: str, line: str, stamp: Stamp | None, readers: Sequence[LineReader]) -> Prefix | None:
    """Read a prefix as the reference does; None if its lines are to be left to that."""
    labels = readers[0].context.labels
    *_, (rest, around) = (line, NOTHING), *strip_prefix(line, labels)
    if len(line) - len(rest) > len(raw):
        return None
    if "pod" in around and ("node" in around or "host" in around):
        return None  # the reference says once where the pod runs
    anchored: dict[int, dict[str, Any]] = {}
    for number, reader in enumerate(readers):
        anchor = reader.format.anchor
        found = (
            anchor.search(raw) if anchor is not None and reader.format.contains in line else None
        )
        if found is None:
            continue
        if reader.format.owns_lines and found.end() != len(raw):
            return None
        told, alone = before_message(raw[: found.start()], labels)
        if not alone:
            return None
        try:
            fields = reader.prefix_fields(found)
        except ValueError:
            return None
        if any(isinstance(value, Unfit) for value in fields.values()):
            return None
        if told.get("ts") != around.get("ts"):
            return None
        anchored[number] = fields
    owners = [n for n, r in enumerate(readers) if r.format.owns_lines and r.format.contains in raw]
    if owners and not anchored.keys() & set(owners):
        return None
    prefix = Prefix(around, anchored)
    return prefix if _timed(prefix, raw, stamp, readers[0]) else None


def _timed(prefix: Prefix, raw: str, stamp: Stamp | None, reader: LineReader) -> bool:
    """Say how the time follows from the one printed; False if it is not sure."""
    text = prefix.around.get("ts")
    if text is None or stamp is None:
        return True
    printed = raw[stamp.begin : stamp.end]
    if printed not in text:
        return printed not in raw.replace(text, "")
    line = LineTold()
    line.told = prefix.around
    value = line.columns("nccl_ranks", reader.context).get("ts")
    if not isinstance(value, int):
        return False
    prefix.shift = stamp.local_us - value
    zone = reader.context.zone
    prefix.in_zone = text == printed and not _is_fixed(zone)
    return True


def _is_fixed(zone: tzinfo) -> bool:
    return zone is UTC or isinstance(zone, timezone) or str(zone) == "UTC"


def moments(local_us: Wide, zone: tzinfo) -> Wide:
    """Return local times of a zone as microseconds since 1970 UTC."""
    quarters, places = np.unique(local_us // _QUARTER_US, return_inverse=True)
    shifts = np.empty(len(quarters), np.int64)
    for place, quarter in enumerate(quarters.tolist()):
        local = _EPOCH + timedelta(microseconds=quarter * _QUARTER_US)
        moment = int(local.replace(tzinfo=zone).timestamp()) * 1_000_000
        shifts[place] = quarter * _QUARTER_US - moment
    return local_us - shifts[places]
