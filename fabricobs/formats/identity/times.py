"""Times in names of files and folders.

Naive times are in the zone the user gives, times of `dt=`/`hour=` partitions in UTC, as the writers
of partitions have it. A number of 10, 13, 16 or 19 digits that begins with 1 counts seconds to
nanoseconds since 1970.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

_MONTHS = {m: n for n, m in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_DATE = r"(?P<y>20\d\d)(?P<ds>[-_.]?)(?P<m>0[1-9]|1[0-2])(?P=ds)(?P<d>0[1-9]|[12]\d|3[01])"
_NAMED_DATE = (
    r"(?P<d2>0?[1-9]|[12]\d|3[01])[-_. ]?(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r"[a-z]*[-_. ]?(?P<y2>20\d\d)"
)
_CLOCK = (
    r"(?P<H>[01]\d|2[0-3])(?P<cs>[-_.:]?)(?P<M>[0-5]\d)(?:(?P=cs)(?P<S>[0-5]\d|60)"
    r"(?:[.,](?P<f>\d{3}(?:\d{3}){0,2})(?!\d))?)?"
)
_ZONE = r"(?:(?P<z>Z)|(?P<zs>[+-])(?P<zh>0\d|1[0-4]):?(?P<zm>00|15|30|45))"
_STAMP = re.compile(
    rf"(?<!\d)(?:{_DATE}|{_NAMED_DATE})(?P<t>[T@ _.,-]|__| - )?{_CLOCK}(?:(?<=\d){_ZONE})?(?!\d)",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"(?<!\d)1\d{9}(?:\d{3}|\d{6}|\d{9})?(?!\d)")
_DAY = re.compile(rf"(?<!\d)(?:{_DATE}|{_NAMED_DATE})(?!\d)", re.IGNORECASE)
_DAY_LAST = re.compile(r"(?<!\d)(?P<a>\d\d)(?P<s>[-_.])(?P<b>\d\d)(?P=s)(?P<y>20\d\d)(?!\d)")
_CLOCK_ALONE = re.compile(rf"(?<![A-Za-z\d])T?{_CLOCK}Z?(?![A-Za-z\d])")
_PARTITION = re.compile(
    r"(?P<key>dt|date|day|ds|year|month|hour|hh|hr|minute|min)=(?P<value>[\d_.-]+)", re.I
)
_SIX_OR_FOUR = re.compile(r"(?<![A-Za-z\d])(\d\d)(\d\d)(?![A-Za-z\d])")


@dataclass(frozen=True, slots=True)
class NameTime:
    """A time in a name: where it stands, and the moment as far as it is told.

    `kind` is `moment` (complete), `day`, `clock` or `ambiguous` (a day as 05-06-2026); `fields` are
    year, month, day, hour, minute, second, microsecond.
    """

    kind: str
    begin: int
    end: int
    fields: tuple[int, ...] = ()
    epoch_us: int | None = None
    offset_minutes: int | None = None


@lru_cache(maxsize=1 << 16)
def time_in(name: str) -> NameTime | None:
    """Return the most complete time in a name: a moment before a day, a day before a clock."""
    for find in (_stamp, _epoch, _day, _day_last, _clock):
        found = find(name)
        if found is not None:
            return found
    return None


def _stamp(name: str) -> NameTime | None:
    for found in _STAMP.finditer(name):
        clock = (int(found["H"]), int(found["M"]), int(found["S"] or 0))
        date = _date(found)
        if date is None or (found["t"] is None and (found["ds"] or found["cs"])):
            continue  # without anything between day and clock all of it is digits
        offset, end = _offset(found)
        micros = int((found["f"] or "0").ljust(6, "0")[:6])
        return NameTime("moment", found.start(), end, (*date, *clock, micros), None, offset)
    return None


def _offset(found: re.Match[str]) -> tuple[int | None, int]:
    """Return the offset from UTC, and where the time ends: `-0700` is one only in ISO 8601."""
    if found["z"]:
        return 0, found.end()
    if found["zs"] is None:
        return None, found.end()
    if (found["t"] or "").upper() != "T":
        return None, found.start("zs")
    minutes = int(found["zh"]) * 60 + int(found["zm"])
    return (-minutes if found["zs"] == "-" else minutes), found.end()


def _epoch(name: str) -> NameTime | None:
    found = _EPOCH.search(name)
    if found is None:
        return None
    micros = int(found[0]) * 1_000_000 // 10 ** (len(found[0]) - 10)
    return NameTime("moment", found.start(), found.end(), (), micros)


def _day(name: str) -> NameTime | None:
    for found in _DAY.finditer(name):
        date = _date(found)
        if date is not None:
            return NameTime("day", found.start(), found.end(), date)
    return None


def _day_last(name: str) -> NameTime | None:
    found = _DAY_LAST.search(name)
    if found is None:
        return None
    a, b, year = int(found["a"]), int(found["b"]), int(found["y"])
    orders = {(a, b), (b, a)}
    valid = sorted(order for order in orders if _is_date(year, *order))
    if not valid:
        return None
    end = found.end()
    clock = _CLOCK_ALONE.match(name, end + 1) if end < len(name) else None
    if len(valid) > 1:
        return NameTime("ambiguous", found.start(), clock.end() if clock else end)
    date = (year, *valid[0])
    if clock is None:
        return NameTime("day", found.start(), end, date)
    told = (int(clock["H"]), int(clock["M"]), int(clock["S"] or 0), 0)
    return NameTime("moment", found.start(), clock.end(), (*date, *told))


def _clock(name: str) -> NameTime | None:
    at = 0
    while (found := _CLOCK_ALONE.search(name, at)) is not None:
        at = found.start() + 1
        if found["S"] is not None or found["cs"] == ":":
            told = (int(found["H"]), int(found["M"]), int(found["S"] or 0))
            return NameTime("clock", found.start(), found.end(), told)
    return None


def _date(found: re.Match[str]) -> tuple[int, int, int] | None:
    if found["y"]:
        date = (int(found["y"]), int(found["m"]), int(found["d"]))
    else:
        date = (int(found["y2"]), _MONTHS[found["mon"].lower()], int(found["d2"]))
    return date if _is_date(*date) else None


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        datetime(year, month, day)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class PathTime:
    """The time a path tells: a moment, or a day alone; `ambiguous` is a day that may be two."""

    ts: int | None = None
    is_day: bool = False
    ambiguous: str | None = None


def time_of_path(components: tuple[str, ...], zone: tzinfo) -> PathTime:
    """Return the time that the components of a path tell together, the last one first.

    A day in one component and a clock in a deeper one are a moment; so are the folders
    `2026/11/21/10` and `dt=2026-11-21/hour=10`.
    """
    partitioned = _partitioned(components)
    if partitioned is not None:
        return partitioned
    clock: NameTime | None = None
    ambiguous = None
    for component in reversed(components):
        told = time_in(component)
        if told is None:
            continue
        if told.kind == "moment":
            return PathTime(_micros(told, zone))
        if told.kind == "day":
            if clock is not None:
                return PathTime(_at(told.fields + clock.fields, zone))
            return PathTime(_at(told.fields, zone), is_day=True)
        if told.kind == "clock":
            clock = clock or told
        else:
            ambiguous = ambiguous or component[told.begin : told.end]
    nested = _nested(components, clock, zone)
    return nested or PathTime(ambiguous=ambiguous)


def _micros(told: NameTime, zone: tzinfo) -> int:
    if told.epoch_us is not None:
        return told.epoch_us
    if told.offset_minutes is not None:
        zone = timezone(timedelta(minutes=told.offset_minutes))
    return _at(told.fields, zone)


def _at(fields: tuple[int, ...], zone: tzinfo) -> int:
    year, month, day, hour, minute, second, micros = (*fields, 0, 0, 0, 0)[:7]
    moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=zone)
    return int(moment.timestamp()) * 1_000_000 + micros


def _nested(components: tuple[str, ...], clock: NameTime | None, zone: tzinfo) -> PathTime | None:
    """Read the folders YEAR/MONTH/DAY, and HOUR below them."""
    for at in range(len(components) - 3):
        year, month, day = components[at : at + 3]
        if not (re.fullmatch(r"20\d\d", year) and month.isdecimal() and day.isdecimal()):
            continue
        if not (len(month) <= 2 and len(day) <= 2 and _is_date(int(year), int(month), int(day))):
            continue
        date = (int(year), int(month), int(day))
        if clock is not None:
            return PathTime(_at(date + clock.fields, zone))
        hour = components[at + 3]
        if at + 4 < len(components) and re.fullmatch(r"[01]\d|2[0-3]", hour):
            return PathTime(_at((*date, int(hour)), zone))
        return PathTime(_at(date, zone), is_day=True)
    return None


def _partitioned(components: tuple[str, ...]) -> PathTime | None:
    """Read `dt=2026-11-21/hour=10/..._MMSS`; None for a path without a day partition."""
    parts = {}
    for component in components[:-1]:
        found = _PARTITION.fullmatch(component)
        if found is not None:
            parts[found["key"].lower()] = found["value"]
    day_text = next((parts[key] for key in ("dt", "date", "day", "ds") if key in parts), "")
    told = time_in(day_text) if day_text else None
    if told is None or told.kind not in {"day", "moment"} or told.epoch_us is not None:
        return None
    in_name = time_in(components[-1])
    if in_name is not None and in_name.kind == "moment":
        return PathTime(_micros(in_name, UTC))
    date = told.fields[:3]
    if in_name is not None and in_name.kind == "clock":
        return PathTime(_at(date + in_name.fields, UTC))
    hour = next((int(parts[k]) for k in ("hour", "hh", "hr") if k in parts), None)
    if hour is None:
        return PathTime(_at(date, UTC), is_day=True)
    rest = _SIX_OR_FOUR.search(components[-1])
    minute = int(parts.get("minute", parts.get("min", "0")))
    second = 0
    if rest is not None and int(rest[1]) < 60 and int(rest[2]) < 60:
        minute, second = int(rest[1]), int(rest[2])
    return PathTime(_at((*date, hour, minute, second), UTC))
