"""Moments, as microseconds since 1970 UTC."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from fabricobs.formats.values.kinds import Unfit, ValueType

# Hours ahead of UTC of the zones that `date` and `show clock` name, as the tz database abbreviates
# them and RFC 822 has them. What is said of several zones (CST, IST, BST) is of the one asked for.
_HOURS_OF_ZONES = {
    "UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3,
    "SAST": 2, "PKT": 5, "WIB": 7, "HKT": 8, "AWST": 8, "JST": 9, "KST": 9, "ACST": 9.5,
    "ACDT": 10.5, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13, "EST": -5, "EDT": -4, "CDT": -5,
    "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10,
}  # fmt: skip
TIME_PATTERN = (
    r"\d{4}[-/]\d\d[-/]\d\d[ T_]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    rf"(?: ?Z|[+-]\d\d:?\d\d| UTC [+-]\d{{4}}| (?:{'|'.join(_HOURS_OF_ZONES)})\b)?"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d"
    r"(?: (?:[A-Z]{2,5}|[+-]\d\d(?:\d\d)?))? \d{4}"
    r"|[A-Z][a-z]{2},? +\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d(?: [AP]M)?"
    r"(?: (?:[A-Z]{2,5}|[+-]\d\d(?::?\d\d)?))?"
)
# As syslog has it; switches put the year first, behind the day, or last (Junos).
SHORT_TIME_PATTERN = (
    r"(?:\d{4} +)?[A-Z][a-z]{2} +\d{1,2}(?: +(?:19|20)\d\d)? "
    r"\d\d:\d\d:\d\d(?:\.\d{1,9})?(?: (?:19|20)\d\d\b)?"
)
# Month first, as Python's loggers have it in the United States; some leave the year out.
US_TIME_PATTERN = r"\d\d/\d\d(?:/(?:\d\d)?\d\d)? \d\d:\d\d:\d\d|\d\d-\d\d \d\d:\d\d:\d\d"
_ISO = re.compile(
    r"(\d{4})[-/]?(\d\d)[-/]?(\d\d)[ T_]+(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r"(?: ?(Z|[+-]\d\d(?::?\d\d)?)| UTC ([+-]\d{4})| ([A-Z]{2,5})\b)?"
)
_DATE_AND_TIME = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?),(\d\d?):(\d\d?):(\d\d?)\.(\d)(?:,([-+])(\d\d?):(\d\d?))?"
)
_EPOCH = re.compile(r"\d+(?:\.\d+)?")
_YEAR = re.compile(r"\d{4}")
EARLIEST_US, LATEST_US = (
    int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000 for year in (1990, 2100)
)


OUT_OF_AGE = "is no time between 1990 and 2100"


class OutOfAgeError(ValueError):
    """A time before 1990 or after 2100."""


def parse_stamp(text: str, zone: tzinfo = UTC) -> int:
    """Read 20250304-101502 as microseconds; with a Z behind it is in UTC."""
    digits = "".join(c for c in text if c.isdigit())
    zone = UTC if text.endswith("Z") else zone
    moment = datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=zone)
    return int(moment.timestamp()) * 1_000_000


def parse_refresh(text: str) -> int | Unfit | None:
    """Read when a counter was last taken, in seconds since 1970; 0 is never."""
    return time_of(text) if float(text) else None


def parse_show_clock(text: str, zone: tzinfo = UTC) -> int:
    """Read `10:15:02.123 EDT Tue Mar 04 2025`, what `show clock` prints, as UTC microseconds."""
    words = text.split()
    clock, _, fraction = words[0].partition(".")
    moment = datetime.strptime(" ".join([*words[-3:], clock]), "%b %d %Y %H:%M:%S")
    told = moment.replace(tzinfo=_zone(words[1], zone))
    return int(told.timestamp()) * 1_000_000 + _micros(fraction)


def parse_date_and_time(text: str) -> int:
    """Read SNMP's DateAndTime (2025-3-4,10:15:2.0,+0:0) as microseconds; without zone UTC."""
    found = _DATE_AND_TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no DateAndTime")
    year, month, day, hour, minute, second, tenth = (int(found[i]) for i in range(1, 8))
    zone = UTC
    if found[8]:
        away = timedelta(hours=int(found[9]), minutes=int(found[10]))
        zone = timezone(-away if found[8] == "-" else away)
    moment = datetime(year, month, day, hour, minute, second, tenth * 100_000, zone)
    return int(moment.timestamp() * 10) * 100_000


def parse_time(text: str, zone: tzinfo = UTC, written_us: int | None = None) -> int:
    """Read a time as microseconds since 1970 UTC; `zone` holds where the text names none.

    `written_us`, when the file was last written, tells the year where syslog leaves it out.
    Takes ISO 8601 and its relatives, the C locale's `date`, and epochs, whose unit follows from
    their size (below 1e11 seconds, 1e14 milliseconds, 1e17 microseconds, else nanoseconds).
    ValueError for what is no time, OutOfAgeError for one that is not of this age (1990 to 2100).
    """
    stripped = text.strip()
    if stripped[:1].isdigit() and _EPOCH.fullmatch(stripped):
        micros = _epoch(stripped)
    else:
        found = _ISO.search(stripped)
        micros = _iso(found, zone) if found is not None else _c_locale(stripped, zone, written_us)
    if not EARLIEST_US <= micros <= LATEST_US:
        raise OutOfAgeError(f"{text!r} is no time between 1990 and 2100")
    return micros


def time_of(text: str, zone: tzinfo = UTC, written_us: int | None = None) -> int | Unfit:
    """Read a time as `parse_time` does, for a column: one not of this age is Unfit."""
    try:
        return parse_time(text, zone, written_us)
    except OutOfAgeError:
        return Unfit(text.strip(), OUT_OF_AGE)


def _iso(found: re.Match[str], zone: tzinfo) -> int:
    year, month, day, hour, minute, second = (int(found[i]) for i in range(1, 7))
    told = _zone(found[8] or found[9] or found[10], zone)
    moment = datetime(year, month, day, hour, minute, second, tzinfo=told)
    return int(moment.timestamp()) * 1_000_000 + _micros(found[7] or "")


def _zone(word: str | None, default: tzinfo) -> tzinfo:
    """Return the zone that `Z`, `EDT`, `+08`, `+0530` or `-07:00` says; else the default."""
    if word == "Z":
        return UTC
    if word in _HOURS_OF_ZONES:
        return timezone(timedelta(hours=_HOURS_OF_ZONES[word]))
    if word is None or word[:1] not in {"+", "-"}:
        return default
    parsed = datetime.strptime(word.replace(":", "").ljust(5, "0"), "%z").tzinfo
    assert parsed is not None
    return parsed


def _epoch(text: str) -> int:
    whole, _, fraction = text.partition(".")
    number = int(whole)
    micros = _micros(fraction)
    if number < 10**11:
        return number * 1_000_000 + micros
    if number < 10**14:
        return number * 1000 + micros // 1000
    return number if number < 10**17 else number // 1000


def _c_locale(text: str, zone: tzinfo, written_us: int | None) -> int:
    words = text.split()
    if len(words) == 2:
        return _month_first(text, zone, written_us)
    if len(words) == 3 or (len(words) == 4 and any(_YEAR.fullmatch(word) for word in words)):
        return _short(words, zone, written_us)
    if len(words) >= 5 and words[1].isdigit():
        return _day_first(words, zone)
    kept = " ".join(words[1:4] + words[-1:])
    told = _zone(words[4], zone) if len(words) == 6 else zone
    moment = datetime.strptime(kept, "%b %d %H:%M:%S %Y").replace(tzinfo=told)
    return int(moment.timestamp()) * 1_000_000


def _short(words: list[str], zone: tzinfo, written_us: int | None) -> int:
    """Read the time of syslog, with the year at any place or without one."""
    year = next((word for word in words if _YEAR.fullmatch(word)), None)
    clock, _, fraction = " ".join(word for word in words if word != year).partition(".")
    if year is None:
        return parse_without_year(clock, zone, written_us) + _micros(fraction)
    moment = datetime.strptime(f"{year} {clock}", "%Y %b %d %H:%M:%S").replace(tzinfo=zone)
    return int(moment.timestamp()) * 1_000_000 + _micros(fraction)


def _micros(fraction: str) -> int:
    """Return what digits behind the dot of a second are in microseconds."""
    return int(fraction.ljust(6, "0")[:6])


def parse_without_year(
    text: str, zone: tzinfo, written_us: int | None = None, layout: str = "%b %d %H:%M:%S"
) -> int:
    """Read syslog's `Mar  4 10:15:02`: the latest such moment not after the file was written.

    `written_us` are microseconds since 1970 UTC; without it the clock counts.
    """
    if written_us is None:
        limit = datetime.now(UTC) + timedelta(days=1)
    else:
        limit = datetime.fromtimestamp(written_us / 1e6, UTC) + timedelta(days=1)
    for year in range(limit.year, limit.year - 8, -1):
        try:
            moment = datetime.strptime(f"{year} {text}", f"%Y {layout}").replace(tzinfo=zone)
        except ValueError:
            continue  # February 29th is not in every year
        if moment <= limit:
            return int(moment.timestamp()) * 1_000_000
    raise ValueError(f"{text!r} is no time")


def parse_clock_alone(text: str, zone: tzinfo, earliest_us: int) -> int:
    """Read `10:15:02` as the first such moment from `earliest_us` on; both in microseconds UTC."""
    clock = datetime.strptime(text, "%H:%M:%S").time()
    earliest = datetime.fromtimestamp(earliest_us / 1e6, UTC).astimezone(zone)
    moment = datetime.combine(earliest.date(), clock, zone)
    if moment < earliest:
        moment = datetime.combine(earliest.date() + timedelta(days=1), clock, zone)
    return int(moment.timestamp()) * 1_000_000


def _month_first(text: str, zone: tzinfo, written_us: int | None) -> int:
    """Read `03/07/2025 14:02:11`; of `03/07 14:02:11` the latest not after the file was written.

    vLLM's loggers write `03-07 14:02:11`, rich's `03/07/25 14:02:11`.
    """
    text = text.replace("-", "/")
    day, _, _ = text.partition(" ")
    if day.count("/") == 1:
        return parse_without_year(text, zone, written_us, "%m/%d %H:%M:%S")
    year = "%Y" if len(day) == len("03/07/2025") else "%y"
    moment = datetime.strptime(text, f"%m/%d/{year} %H:%M:%S").replace(tzinfo=zone)
    return int(moment.timestamp()) * 1_000_000


def _day_first(words: list[str], zone: tzinfo) -> int:
    """Read `Mon 02 Mar 2026 09:00:00 AM UTC`, what `date` prints in an English locale."""
    half = next((word for word in words if word in {"AM", "PM"}), None)
    layout = "%d %b %Y %I:%M:%S %p" if half else "%d %b %Y %H:%M:%S"
    kept = " ".join(words[1:5] + ([half] if half else []))
    named = _zone(words[-1], zone)
    return int(datetime.strptime(kept, layout).replace(tzinfo=named).timestamp()) * 1_000_000


_CLOCK = r"\d\d:\d\d:\d\d(?:\.\d{1,6})? [A-Z]{2,5} [A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d{4}"
# Types of text that needs a time zone to be a moment.
ZONED = frozenset({"time", "short_time", "us_time", "compact_time"})


TYPES: dict[str, ValueType] = {
    "time": ValueType(TIME_PATTERN, time_of, ("TIMESTAMP",)),
    "short_time": ValueType(SHORT_TIME_PATTERN, time_of, ("TIMESTAMP",)),
    "us_time": ValueType(US_TIME_PATTERN, time_of, ("TIMESTAMP",)),
    "compact_time": ValueType(r"20\d{6} +\d\d:\d\d:\d\d", time_of, ("TIMESTAMP",)),
    "stamp": ValueType(r"20\d{6}[-_T]\d{6}Z?", parse_stamp, ("TIMESTAMP",)),
    "show_clock": ValueType(_CLOCK, parse_show_clock, ("TIMESTAMP",)),
    "date_and_time": ValueType(r"\S+", parse_date_and_time, ("TIMESTAMP",)),
    "epoch": ValueType(r"\d{10,19}(?:\.\d+)?", time_of, ("TIMESTAMP",)),
    "refresh": ValueType(r"\d+(?:\.\d+)?", parse_refresh, ("TIMESTAMP",)),
}
