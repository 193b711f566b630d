"""What a captured piece of text means: the types a definition may name.

Every type is a pattern (for line templates) and a conversion (for every reader). A conversion
returns None for the many spellings of "no value" and raises ValueError for text it cannot mean.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime

from fabricobs.formats import infiniband
from fabricobs.store.tables import Type

Value = str | int | float | bool | None

# Written for "no value" by the switch and NIC tools: never zero.
NO_VALUE = frozenset({"", "-", "--", "n/a", "na", "n/a (no pma)", "none", "null", "unknown!"})

TIME_PATTERN = (
    r"\d{4}[-/]\d\d[-/]\d\d[ T_]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?Z|[+-]\d\d:?\d\d)?"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?: [A-Z]{2,5})? \d{4}"
    r"|[A-Z][a-z]{2} +\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d(?: [AP]M)?(?: [A-Z]{2,5})?"
)
SHORT_TIME_PATTERN = r"[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d"
_ISO = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[ T_](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))? ?(Z|[+-]\d\d:?\d\d)?"
)
_SPEED = re.compile(r"([\d.]+) ?([KMGT]?)(?:b/s|b/sec|bps|bit/s)?\b", re.IGNORECASE)
_GBPS = {"": 1.0, "K": 1e-6, "M": 1e-3, "G": 1.0, "T": 1e3}
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DATE_AND_TIME = re.compile(r"(\d{4})-(\d+)-(\d+),(\d+):(\d+):(\d+)\.(\d)(?:,([-+])(\d+):(\d+))?")
_EPOCH = re.compile(r"\d+(?:\.\d+)?")
EARLIEST_US, LATEST_US = (
    int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000 for year in (1990, 2100)
)
_INT64 = 1 << 63
_SPAN = re.compile(r"(\d+\.?\d*) ?(ns|us|ms|s|sec|seconds)?")
_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3, None: 1.0}


def parse_whole(text: str) -> int | None:
    """Read a whole number, thousands commas allowed; 2^63 and above wraps to its negative."""
    try:
        number = int(text)
    except ValueError:
        if text.lower() in NO_VALUE:
            return None
        number = int(_without_thousands(text))
    return _in_64_bits(number, text)


def _in_64_bits(number: int, text: str) -> int:
    if -_INT64 <= number < _INT64:
        return number
    if _INT64 <= number < 2 * _INT64:
        return number - 2 * _INT64
    raise ValueError(f"{text} does not fit 64 bits")


def _without_thousands(text: str) -> str:
    """Take thousands commas out; a comma elsewhere is none, and the number is refused."""
    return text.replace(",", "") if _THOUSANDS.fullmatch(text) else text


def parse_hex(text: str) -> int:
    """Read a hexadecimal number, with or without 0x."""
    return _in_64_bits(int(text, 16), text)


def parse_number(text: str) -> float | None:
    """Read a decimal number, thousands commas allowed."""
    return None if text.lower() in NO_VALUE else float(_without_thousands(text))


def parse_text(text: str) -> str | None:
    """Keep text as it is, without blanks around it."""
    stripped = text.strip()
    return None if stripped.lower() in NO_VALUE else stripped


def parse_flag(text: str) -> bool:
    """Read 0/1, true/false, enabled/disabled or on/off."""
    lowered = text.lower()
    if lowered in {"1", "true", "enabled", "on", "yes"}:
        return True
    if lowered in {"0", "false", "disabled", "off", "no"}:
        return False
    raise ValueError(f"{text!r} is neither 0 nor 1")


def parse_speed(text: str) -> float | None:
    """Read a link rate (400G, 100M, 400 Gb/sec (4X NDR)) in Gb/s; a bare number is Gb/s."""
    if text.lower() in NO_VALUE:
        return None
    match = _SPEED.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no link rate")
    return float(match[1]) * _GBPS[match[2].upper()]


def parse_thousands(text: str) -> float | None:
    """Read a number of the next larger unit: seconds for a column of ms, ms for one of us."""
    value = parse_number(text)
    return None if value is None else value * 1000


def parse_millionths(text: str) -> float | None:
    """Read seconds for a column of microseconds."""
    value = parse_number(text)
    return None if value is None else value * 1e6


def parse_rate(text: str) -> float | None:
    """Read a rate per second as the ms one of them takes; a rate of 0 says nothing."""
    value = parse_number(text)
    return 1000 / value if value else None


def parse_clock(text: str) -> float:
    """Read the minutes and seconds, or hours too, of a progress bar in ms."""
    seconds = 0
    for part in text.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds * 1000.0


def parse_span(text: str) -> float:
    """Read a duration that carries its unit in ms; a bare number is ms."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no duration")
    return float(match[1]) * _MS[match[2]]


def parse_size(text: str) -> int:
    """Read a size as programs of this field print it (678.86 MB), in bytes; K is 1024."""
    bare = text.rstrip("iB")
    scale: int = 1024 ** ("KMGT".find(bare[-1:]) + 1)
    return round(float(bare.rstrip("KMGT ")) * scale)


def parse_gbits(text: str) -> float | None:
    """Read Gbit/s as GB/s."""
    value = parse_number(text)
    return None if value is None else value / 8


_PORT_WORD = re.compile(r"([A-Za-z][A-Za-z-]*) ?(\d.*)")
_PORT_WORDS = {
    **dict.fromkeys(("Et", "Eth"), "Ethernet"),
    **dict.fromkeys(("Po", "port-channel", "Port-channel"), "Port-Channel"),
    **dict.fromkeys(("Ma", "management"), "Management"),
    **dict.fromkeys(("Lo", "loopback"), "Loopback"),
    "Vl": "Vlan",
}
_TRAFFIC = re.compile(r"(\d[\d.,]*) ?(?:([KMGTP])i?B|Bytes)?")
_THOUSAND_TIMES: dict[str, int] = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
}
_UP = frozenset({"up", "up(1)", "1", "connected"})
_CLI_SPEED = re.compile(r"(?:a-)?(\d+(?:\.\d+)?)([MGT]?)", re.IGNORECASE)
_MBPS = {"": 1e-3, "M": 1e-3, "G": 1.0, "T": 1e3}


def parse_switch_port(text: str) -> str:
    """Read a port of EOS or NX-OS by its full name: Et1/1 and Eth1/1 are Ethernet1/1."""
    match = _PORT_WORD.fullmatch(text)
    if match is None:
        return text
    return _PORT_WORDS.get(match[1], match[1]) + match[2]


_INSTANCE_PORT = re.compile(r"(?:https?://)?(.+?)(?::\d+)?(?:/.*)?")


def parse_instance(text: str) -> str | None:
    """Read the device of a scraped address, gpu-a07:9100 or https://gpu-a07:9100/metrics."""
    found = _INSTANCE_PORT.fullmatch(text.strip())
    return parse_text(found[1].strip("[]")) if found is not None else None


def parse_link_state(text: str) -> str:
    """Read the many words for a working link as up, all others as down."""
    return "up" if text.lower() in _UP else "down"


def parse_cli_speed(text: str) -> float | None:
    """Read a rate of a status table (a-40G, 25G, 1000) in Gb/s; a bare number is Mb/s."""
    match = _CLI_SPEED.fullmatch(text.strip())
    return float(match[1]) * _MBPS[match[2].upper()] if match is not None else None


def parse_traffic(text: str) -> int | None:
    """Read an amount for people (9.98 KB, 300 Bytes, 12) as bytes; the rest is rounded away."""
    if text.lower() in NO_VALUE:
        return None
    match = _TRAFFIC.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no amount")
    return round(float(_without_thousands(match[1])) * _THOUSAND_TIMES[match[2] or ""])


def parse_stamp(text: str) -> int:
    """Read 20250304-101502 (UTC) as microseconds."""
    digits = "".join(c for c in text if c.isdigit())
    moment = datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000


def parse_priority_group(text: str) -> str:
    """Name an ingress priority group as the command line does."""
    return f"PG{text}"


def parse_oid(text: str) -> str | None:
    """Keep an object id of SAI; other text is none."""
    return text if text.startswith("oid:0x") else None


def parse_yang_port(text: str) -> str | None:
    """Read the port of a path: interfaces/interface[name=Ethernet4]/state."""
    found = re.search(r"interface\[name=([^\]]+)\]", text)
    return parse_switch_port(found[1]) if found is not None else None


def parse_refresh(text: str) -> int | None:
    """Read when a counter was last taken, in seconds since 1970; 0 is never."""
    return parse_time(text) if float(text) else None


def parse_show_clock(text: str) -> int:
    """Read `10:15:02.123 UTC Tue Mar 04 2025`, what `show clock` prints, as UTC microseconds."""
    words = text.split()
    clock, _, fraction = words[0].partition(".")
    moment = datetime.strptime(" ".join([*words[-3:], clock]), "%b %d %Y %H:%M:%S")
    micros = int(fraction.ljust(6, "0")[:6]) if fraction else 0
    return int(moment.replace(tzinfo=UTC).timestamp()) * 1_000_000 + micros


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


def parse_rdma_port(text: str) -> str:
    """Read a port of an RDMA device (mlx5_0/ports/1, 'mlx5_0' port 1) as mlx5_0/1."""
    return text.replace("'", "").replace("/ports/", "/").replace(" port ", "/")


def parse_gpu(text: str) -> str:
    """Name a GPU by its index, as the topology matrix does."""
    return f"GPU{int(text)}"


def parse_nvlink(text: str) -> str:
    """Name a NVLink, and a counter of it: Link 3: Replay Errors."""
    return f"NV{text.replace(':', '')}"


def parse_time(text: str, zone: tzinfo = UTC) -> int:
    """Read a time as microseconds since 1970 UTC; `zone` holds where the text names none.

    Takes ISO 8601 and its relatives, the C locale's `date`, and epochs, whose unit follows from
    their size (below 1e11 seconds, 1e14 milliseconds, 1e17 microseconds, else nanoseconds).
    ValueError for what is no time, or none of this age (1990 to 2100).
    """
    stripped = text.strip()
    if stripped[:1].isdigit() and _EPOCH.fullmatch(stripped):
        micros = _epoch(stripped)
    else:
        found = _ISO.search(stripped)
        micros = _iso(found, zone) if found is not None else _c_locale(stripped, zone)
    if not EARLIEST_US <= micros <= LATEST_US:
        raise ValueError(f"{text!r} is no time between 1990 and 2100")
    return micros


def _iso(found: re.Match[str], zone: tzinfo) -> int:
    year, month, day, hour, minute, second = (int(found[i]) for i in range(1, 7))
    moment = datetime(year, month, day, hour, minute, second, tzinfo=_zone(found[8], zone))
    return int(moment.timestamp()) * 1_000_000 + int((found[7] or "0").ljust(6, "0")[:6])


def _zone(text: str | None, default: tzinfo) -> tzinfo:
    if text is None:
        return default
    if text == "Z":
        return UTC
    parsed = datetime.strptime(text.replace(":", ""), "%z").tzinfo
    assert parsed is not None
    return parsed


def _epoch(text: str) -> int:
    whole, _, fraction = text.partition(".")
    number = int(whole)
    micros = int(fraction.ljust(6, "0")[:6]) if fraction else 0
    if number < 10**11:
        return number * 1_000_000 + micros
    if number < 10**14:
        return number * 1000 + micros // 1000
    return number if number < 10**17 else number // 1000


def _c_locale(text: str, zone: tzinfo) -> int:
    words = text.split()
    if len(words) == 3:
        return _without_year(text, zone)
    if len(words) >= 5 and words[1].isdigit():
        return _day_first(words, zone)
    if len(words) == 6 and words[4] in {"UTC", "GMT"}:
        moment = parsedate_to_datetime(
            f"{words[0]}, {words[2]} {words[1]} {words[5]} {words[3]} +0000"
        )
    else:
        kept = " ".join(words[1:4] + words[-1:])
        moment = datetime.strptime(kept, "%b %d %H:%M:%S %Y").replace(tzinfo=zone)
    return int(moment.timestamp()) * 1_000_000


def _without_year(text: str, zone: tzinfo) -> int:
    """Read syslog's `Mar  4 10:15:02`: the latest such moment that is not ahead of the clock."""
    limit = datetime.now(tz=UTC) + timedelta(days=1)
    for year in range(limit.year, limit.year - 8, -1):
        try:
            moment = datetime.strptime(f"{year} {text}", "%Y %b %d %H:%M:%S").replace(tzinfo=zone)
        except ValueError:
            continue  # February 29th is not in every year
        if moment <= limit:
            return int(moment.timestamp()) * 1_000_000
    raise ValueError(f"{text!r} is no time")


def _day_first(words: list[str], zone: tzinfo) -> int:
    """Read `Mon 02 Mar 2026 09:00:00 AM UTC`, what `date` prints in an English locale."""
    half = next((word for word in words if word in {"AM", "PM"}), None)
    layout = "%d %b %Y %I:%M:%S %p" if half else "%d %b %Y %H:%M:%S"
    kept = " ".join(words[1:5] + ([half] if half else []))
    named = UTC if words[-1] in {"UTC", "GMT"} else zone
    return int(datetime.strptime(kept, layout).replace(tzinfo=named).timestamp()) * 1_000_000


# ncclAlgo and ncclProto by number, as logs before 2.24 print them.
_ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
_PROTOCOLS = ("LL", "LL128", "Simple")


def _parse_choice(names: tuple[str, ...]) -> Callable[[str], Value]:
    """Return a reader of one of `names`, in any case or by its number."""
    known = {str(number): name for number, name in enumerate(names)}
    known |= {name.lower(): name for name in names}

    def parse(text: str) -> Value:
        return known.get(text.lower(), text)

    return parse


def parse_rank_of(text: str) -> int:
    """Read the rank of `15[b7000]`; the brackets hold a device."""
    return _in_64_bits(int(text.partition("[")[0]), text)


def parse_gdr(text: str) -> bool:
    """Read what follows the device of a NET connection: GPUDirect RDMA is told, its absence not."""
    return text.startswith("/GDRDMA")


def parse_hash(text: str) -> str:
    """Read a communicator's hash; the log writes 0x before it, the RAS report does not."""
    return text if text.startswith("0x") else f"0x{text}"


def parse_program(text: str) -> str | None:
    """Read the name of a program from how it was called; an option is none."""
    return None if text.startswith("-") else text.rpartition("/")[2] or None


def parse_bucket(text: str) -> int:
    """Read a range of sizes (4-5MB) as its lower bound in bytes; the units are of 1024."""
    unit = "KMGT".find(text.rstrip("B")[-1:]) + 1
    scale: int = 1024**unit
    return int(text.partition("-")[0]) * scale


def parse_percent(text: str) -> float:
    """Read a share in percent, its sign given or not."""
    return float(text.rstrip("%"))


def parse_mtu(text: str) -> int:
    """Read an ibv_mtu in bytes: 1 is 256, 5 is 4096."""
    if text not in {"1", "2", "3", "4", "5"}:
        raise ValueError(f"{text!r} is no ibv_mtu")
    return 128 << int(text)


@dataclass(frozen=True, slots=True)
class ValueType:
    """A type a definition may name: its pattern, its conversion, the column types it may fill."""

    pattern: str
    parse: Callable[[str], Value]
    fills: tuple[Type, ...]


_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)"

# What EOS and NX-OS print in the Status column, and the states of IF-MIB.
_STATES = (
    r"connected|notconnect|notconnec|disabled|inactive|err-?disabled|errdisable|up|down|"
    r"suspnd|suspended|monitoring|(?:sfp|xcvr|sdp)[A-Z][A-Za-z]+|noOperMem\w*|channelDo\w*|"
    r"linkFlapE\w*|\w+\(\d\)"
)
# Commands that may follow a prompt of EOS or NX-OS; `QoS-Group# Bandwidth` is a table header.
_PROMPTED = (
    r"sh|sho|show|bash|term|terminal|enable|en|exit|end|conf|configure|clear|date|watch|run|no"
)
_CLI_SPEEDS = r"(?:a-)?\d[\d.]*[MGT]?(?:\(\w+\))?|(?:a-)?auto|unconf\w*|--|N/A"
_CLOCK = r"\d\d:\d\d:\d\d(?:\.\d{1,6})? [A-Z]{2,5} [A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d{4}"


def _whole_number(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """Return the conversion with a number beyond 64 bits refused."""

    def bounded(text: str) -> Value:
        value = parse(text)
        return _in_64_bits(value, text) if type(value) is int else value

    return bounded


_TYPES: dict[str, ValueType] = {
    "word": ValueType(r"\S+?", parse_text, ("VARCHAR",)),
    "text": ValueType(r".*?", parse_text, ("VARCHAR",)),
    "name": ValueType(r"[^/\s]+", parse_text, ("VARCHAR",)),
    "device": ValueType(r"[^:/\s\[\](){}<>=,;]+", parse_text, ("VARCHAR",)),
    "quoted": ValueType(r'[^"]*', parse_text, ("VARCHAR",)),
    "node": ValueType(r"[A-Z]+/[0-9a-f-]+", parse_text, ("VARCHAR",)),
    "source": ValueType(r"[^\s:]+:\d+", parse_text, ("VARCHAR",)),
    "address": ValueType(r"[0-9a-fA-F:.]+", parse_text, ("VARCHAR",)),
    "rail": ValueType(r"(?::\d*){0,2}", parse_text, ("VARCHAR",)),
    "ranks": ValueType(r"-?\d+(?:/-?\d+)*", parse_text, ("VARCHAR",)),
    "rank_list": ValueType(r"\d[\d ]*(?:\.\.\.)?", parse_text, ("VARCHAR",)),
    "parent_first": ValueType(r"\[\d+\] -?\d+->.*", parse_text, ("VARCHAR",)),
    "algorithm": ValueType(r"\w+", _parse_choice(_ALGORITHMS), ("VARCHAR",)),
    "protocol": ValueType(r"\w+", _parse_choice(_PROTOCOLS), ("VARCHAR",)),
    "rank_of": ValueType(r"\d+(?:\[[^\]\s]*\])?", parse_rank_of, ("BIGINT",)),
    "gdr": ValueType(r"(?:/GDRDMA(?:\(PCI\))?)?(?:/Shared)?", parse_gdr, ("BOOLEAN",)),
    "hash": ValueType(r"(?:0x)?[0-9a-f]+", parse_hash, ("VARCHAR",)),
    "program": ValueType(r"\S+", parse_program, ("VARCHAR",)),
    "bucket": ValueType(r"\d+-\d+[KMGT]?B", parse_bucket, ("BIGINT",)),
    "percent": ValueType(r"\d+(?:\.\d*)?%?", parse_percent, ("DOUBLE",)),
    "ibv_mtu": ValueType(r"\d", parse_mtu, ("BIGINT",)),
    "is": ValueType(r" *[:=]? *", parse_text, ("VARCHAR",)),
    "ifname": ValueType(r"[a-z][a-z0-9]*\d[a-z0-9]*", parse_text, ("VARCHAR",)),
    "suffix": ValueType(r"(?:[-_]\d[\d_T-]*)?(?:\.\w+)?", parse_text, ("VARCHAR",)),
    "dots": ValueType(r"\.+", parse_text, ("VARCHAR",)),
    "rdma_port": ValueType(r"'?[\w.-]+'?(?:/ports/|/| port )\d+", parse_rdma_port, ("VARCHAR",)),
    "guid": ValueType(r"(?:0x)?[0-9a-fA-F]{8,16}", infiniband.parse_guid, ("VARCHAR",)),
    "lid": ValueType(r"0x[0-9a-fA-F]+|\d+", infiniband.parse_lid, ("VARCHAR",)),
    "ib_port": ValueType(r"\d+", infiniband.parse_port, ("VARCHAR",)),
    "hex_port": ValueType(r"[0-9a-f]+", infiniband.parse_hex_port, ("VARCHAR",)),
    "lanes": ValueType(r"\d+[xX]", infiniband.parse_lanes, ("BIGINT",)),
    "lane": ValueType(r"[A-Z]+\d*|\d+\.?\d*|\?+", infiniband.parse_lane, ("DOUBLE",)),
    "mlxlink_speed": ValueType(r"\S+", infiniband.parse_mlxlink_speed, ("DOUBLE",)),
    "mlxlink_device": ValueType(r"\S+?", infiniband.parse_mlxlink_device, ("VARCHAR",)),
    "lanes_code": ValueType(r"\d+", infiniband.parse_lanes_code, ("BIGINT",)),
    "lane_code": ValueType(r"\d+", infiniband.parse_lane_code, ("DOUBLE",)),
    "ib_mtu": ValueType(r"\d+", infiniband.parse_mtu_code, ("BIGINT",)),
    "state": ValueType(r"(?:\d+: *)?\w+", infiniband.parse_state, ("VARCHAR",)),
    "words": ValueType(r"\d+", infiniband.parse_words, ("BIGINT",)),
    "pma": ValueType(r"\S+", infiniband.parse_pma, ("BIGINT",)),
    "host": ValueType(r"[A-Za-z0-9][\w.-]*", parse_text, ("VARCHAR",)),
    "switch_port": ValueType(r"[A-Za-z][A-Za-z-]*\d[\w/.:-]*", parse_switch_port, ("VARCHAR",)),
    "refresh": ValueType(r"\d+(?:\.\d+)?", parse_refresh, ("TIMESTAMP",)),
    "sonic_port": ValueType(r"[A-Za-z][A-Za-z-]*\d+", parse_text, ("VARCHAR",)),
    "sai_path": ValueType(r"(?:[\w:-]*/)*", parse_text, ("VARCHAR",)),
    "oid": ValueType(r"oid:0x[0-9a-f]+", parse_oid, ("VARCHAR",)),
    "nvue": ValueType(r"(?:(?:link|counters|stats|netstat|qos)\.)*", parse_text, ("VARCHAR",)),
    "yang": ValueType(r"(?:\S*[/.:])?", parse_text, ("VARCHAR",)),
    "yang_port": ValueType(r"\S+", parse_yang_port, ("VARCHAR",)),
    "pg": ValueType(r"\d+", parse_priority_group, ("VARCHAR",)),
    "metric": ValueType(r"[A-Za-z_:][\w:]*", parse_text, ("VARCHAR",)),
    "instance": ValueType(r"\S+", parse_instance, ("VARCHAR",)),
    "link_state": ValueType(_STATES, parse_link_state, ("VARCHAR",)),
    "int": ValueType(r"-?\d+", parse_whole, ("BIGINT", "DOUBLE")),
    "count": ValueType(r"-?\d[\d,]*", parse_whole, ("BIGINT", "DOUBLE")),
    "hex": ValueType(r"(?:0x)?[0-9a-fA-F]+", parse_hex, ("BIGINT",)),
    "number": ValueType(_NUMBER, parse_number, ("DOUBLE",)),
    "amount": ValueType(
        r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?", parse_number, ("DOUBLE",)
    ),
    "seconds": ValueType(_NUMBER, parse_thousands, ("DOUBLE",)),
    "seconds_in_us": ValueType(_NUMBER, parse_millionths, ("DOUBLE",)),
    "millis": ValueType(_NUMBER, parse_thousands, ("DOUBLE",)),
    "rate": ValueType(_NUMBER, parse_rate, ("DOUBLE",)),
    "span": ValueType(r"\d+\.?\d* ?(?:ns|us|ms|s)?", parse_span, ("DOUBLE",)),
    "timed": ValueType(r"\d+\.?\d* ?(?:ns|us|ms|seconds|sec|s)\b", parse_span, ("DOUBLE",)),
    "clock": ValueType(r"\d+(?::\d\d){1,2}", parse_clock, ("DOUBLE",)),
    "size": ValueType(r"\d+\.?\d* ?[KMGT]?i?B", parse_size, ("BIGINT",)),
    "gbits": ValueType(_NUMBER, parse_gbits, ("DOUBLE",)),
    "cell": ValueType(r"\S+", parse_number, ("DOUBLE",)),
    "pci": ValueType(
        r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?", parse_text, ("VARCHAR",)
    ),
    "pcie_limited": ValueType(
        r"[\d.]+ Gb/s available PCIe bandwidth, .*", parse_text, ("VARCHAR",)
    ),
    "gpu": ValueType(r"\d+", parse_gpu, ("VARCHAR",)),
    "topo_nic": ValueType(r"NIC\d+", parse_text, ("VARCHAR",)),
    "nvlink": ValueType(r"Link \d+", parse_nvlink, ("VARCHAR",)),
    "nvlink_errors": ValueType(r"Link \d+: [A-Z][\w ]*", parse_nvlink, ("VARCHAR",)),
    "flag": ValueType(r"[01]|Enabled|Disabled", parse_flag, ("BOOLEAN",)),
    "cli_speed": ValueType(_CLI_SPEEDS, parse_cli_speed, ("DOUBLE",)),
    "traffic": ValueType(
        r"\d[\d.,]*(?: (?:Bytes|[KMGTP]i?B))?|n/a|-", parse_traffic, ("BIGINT", "DOUBLE")
    ),
    "speed": ValueType(r".*?", parse_speed, ("DOUBLE",)),
    "time": ValueType(TIME_PATTERN, parse_time, ("TIMESTAMP",)),
    "short_time": ValueType(SHORT_TIME_PATTERN, parse_time, ("TIMESTAMP",)),
    "stamp": ValueType(r"20\d{6}[-_T]\d{6}Z?", parse_stamp, ("TIMESTAMP",)),
    "show_clock": ValueType(_CLOCK, parse_show_clock, ("TIMESTAMP",)),
    "date_and_time": ValueType(r"\S+", parse_date_and_time, ("TIMESTAMP",)),
    "prompted": ValueType(_PROMPTED, parse_text, ("VARCHAR",)),
    "rule": ValueType(r"-{7,}|={7,}", parse_text, ("VARCHAR",)),
    "epoch": ValueType(r"\d{10,19}(?:\.\d+)?", parse_time, ("TIMESTAMP",)),
}

_CHECKED = frozenset({"int", "count", "hex"})
VALUE_TYPES: dict[str, ValueType] = {
    name: replace(kind, parse=_whole_number(kind.parse))
    if "BIGINT" in kind.fills and name not in _CHECKED
    else kind
    for name, kind in _TYPES.items()
}

# Types of text that needs a time zone to be a moment.
ZONED = frozenset({"time", "short_time"})

# What a cell becomes when its definition names no type.
DEFAULT_TYPE: dict[Type, str] = {
    "VARCHAR": "text",
    "BIGINT": "count",
    "DOUBLE": "number",
    "BOOLEAN": "flag",
    "TIMESTAMP": "time",
    "MAP(VARCHAR, BIGINT)": "count",
}
