"""What switches print: ports, states, rates and amounts."""

import re

from fabricobs.formats.values.kinds import NO_VALUE, ValueType
from fabricobs.formats.values.numbers import without_thousands
from fabricobs.formats.values.texts import parse_text

_SPEED = re.compile(r"([\d.]+) ?([KMGT]?)(?:b/s|b/sec|bps|bit/s)?\b", re.IGNORECASE)
_GBPS = {"": 1.0, "K": 1e-6, "M": 1e-3, "G": 1.0, "T": 1e3}


def parse_speed(text: str) -> float | None:
    """Read a link rate (400G, 100M, 400 Gb/sec (4X NDR)) in Gb/s; a bare number is Gb/s."""
    if text.lower() in NO_VALUE:
        return None
    match = _SPEED.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no link rate")
    return float(match[1]) * _GBPS[match[2].upper()]


def parse_lane_numbers(text: str) -> int | None:
    """Count the lanes of a port, which SONiC lists by number: 0,1,2,3."""
    return None if text.lower() in NO_VALUE else text.count(",") + 1


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
    return round(float(without_thousands(match[1])) * _THOUSAND_TIMES[match[2] or ""])


def parse_fan(text: str) -> str:
    """Return the name of a fan; some tables print its number alone."""
    return f"Fan {text}" if text[0].isdigit() else text


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


def parse_classes(text: str) -> str:
    """Read a list of traffic classes; N/A says that there are none."""
    return "none" if text == "N/A" else text


def parse_class_bits(text: str) -> str:
    """Read a bitmap of one digit, the lowest bit for class 0, as the list of its classes."""
    if text == "Off":
        return "none"
    return ",".join(str(bit) for bit in range(4) if int(text) >> bit & 1) or "none"


def parse_class_list(text: str) -> str:
    """Read a list of classes that commas or blanks separate, as one with commas."""
    return ",".join(re.findall(r"\d", text))


def parse_class_range(text: str) -> str:
    """Read a class, or a range of them (3-4), as a list with commas."""
    first, _, last = text.partition("-")
    return ",".join(map(str, range(int(first), int(last or first) + 1)))


def parse_low_or_high(text: str) -> str:
    """Read the marks that NX-OS puts behind a received power out of bounds."""
    side = "high" if text[0] == "+" else "low"
    return f"Rx Power {side} {'alarm' if len(text) > 1 else 'warning'}"


def parse_junos_module(text: str) -> str:
    """Name the port of a module by FPC, PIC and port: MIC(0/1) link 3, qsfp-0/0/10, qsfp-0010.

    The interface has them behind its media type, et-0/0/10.
    """
    if "link" in text:
        return "/".join(re.findall(r"\d+", text))
    digits = text.rpartition("-")[2]
    return digits if "/" in digits else f"{digits[0]}/{digits[1]}/{int(digits[2:])}"


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
# Commands of hosts and switches, as a loop over hosts prints them above their output.
_COMMAND = (
    r"(?:show|rdma|mlxlink|ip|lldptool|dcb|mlnx_qos|cat) .+?|"
    r"(?:ibstat|ibstatus|ibdev2netdev|perfquery|ibqueryerrors|iblinkinfo|snmpwalk|sysfs|lldpctl|dmesg|"
    r"lspci|lsmod|show_gids|amd-smi|rocm-smi|nvidia-smi|ibswinfo|ibnetdiscover|ncclras)(?: .+?)?"
)
# What may stand in a line of syslog between the switch's name and its message, and how that begins:
# a colon, the switch's own time, facility and severity, a program, a sequence number, a VDC.
_OWN_TIME = (
    r"(?:\d{4} )?[A-Z][a-z]{2} +\d{1,2}(?: \d{4})? \d\d:\d\d:\d\d(?:\.\d+)?"
    r"(?: \d{4})?(?: [A-Z]{2,5})?:?"
)
_BEFORE_MESSAGE = (
    rf":|{_OWN_TIME}|<?[a-z]+\d?\.[a-z]+>?|[a-z]+\d?\|[A-Z]+|[\w/+-]+(?:\[\d+\])?:|%\$ VDC-\d+ %\$"
)
_MESSAGE = r"%[A-Z]|[A-Z]+ +[a-z]+\d*#|mib2d[ \[]|fpc\d|sr_"
# Words for storms of pauses, for optics and for errors that FEC sees, as a message may have them.
_SERIOUS = (
    r"(?:[Aa]larm|ALARM|[Ww]arning|WARN|[Tt]hreshold|THRESHOLD|[Ee]xceed|EXCEED|[Dd]egrad|DEGRAD)"
)
# One branch for each first letter: each place of a message is asked, and most have none of these.
_POWER = rf"[ _-][Pp]ower.*(?:{_SERIOUS}|[Ll]ow|[Hh]igh)"
_WRONG = rf".*(?:{_SERIOUS}|[Ee]rror|[Uu]ncorrect)"
_LINK_ALARM = (
    r".*(?:[Pp][Ff][Cc](?:[ _-]?[Ww][Dd]\b|.*(?:[Ss]torm|STORM|[Dd]eadlock|DEADLOCK|[Ss]tuck|STUCK"
    r"|[Ww]atch-?[Dd]og|WATCHDOG))"
    rf"|[Tt](?:(?:ransceiver|RANSCEIVER).*{_SERIOUS}|(?:[Xx]|ransmit){_POWER})"
    rf"|[Oo](?:(?:ptic|PTIC).*{_SERIOUS}|(?:ptical|utput){_POWER})"
    rf"|[Rr](?:[Xx]|eceived?){_POWER}|[Ii]nput{_POWER}"
    rf"|[XQSqs](?:(?:CVR|SFP|sfp|FP|fp).*{_SERIOUS}|ymbol[ _-][Ee]rror{_WRONG})"
    rf"|[^A-Za-z](?:D(?:OM|DM)\b.*{_SERIOUS}|[FB]E[CR]\b{_WRONG})"
    r"|[Uu]ncorrect\w* .*(?:FEC\b|[Cc]ode ?word)|[Hh][Ii](?:gh)?[ _-]?[Bb][Ee][Rr]\b).*"
)
_CLI_SPEEDS = r"(?:a-)?\d[\d.]*[MGT]?(?:\(\w+\))?|(?:a-)?auto|unconf\w*|--|N/A"


TYPES: dict[str, ValueType] = {
    "daemon": ValueType(
        r"sshd|(?i:crond?)|systemd(?:-\w+)?|sudo|su|login|rsyslogd|snmpd|ntpd|chronyd|dhclient|logrotate",
        parse_text,
        ("VARCHAR",),
    ),
    "switch_port": ValueType(r"[A-Za-z][A-Za-z-]*\d[\w/.:-]*", parse_switch_port, ("VARCHAR",)),
    "ethernet_port": ValueType(r"Ethernet\d+/\d+(?:/\d+)?", parse_switch_port, ("VARCHAR",)),
    "rx_mark": ValueType(r"\+\+?|--?", parse_low_or_high, ("VARCHAR",)),
    "sonic_port": ValueType(r"[A-Za-z][A-Za-z-]*\d+", parse_text, ("VARCHAR",)),
    "port_list": ValueType(r"[A-Za-z]+\d+(?:,[A-Za-z]+\d+)*", parse_text, ("VARCHAR",)),
    # A port of Junos, or a wildcard for several: et-0/0/1:0, et-*, et-0/0/[0-7], all.
    "junos_port": ValueType(r"(?:et|xe|ge|mge)-[\d/:*?\[\]-]+|ae\d+|all", parse_text, ("VARCHAR",)),
    "junos_module": ValueType(
        r"C?MIC\(\d+/\d+\) link \d+|[xq]?sfp[a-z]*-(?:\d+/\d+/\d+|\d{3,5})",
        parse_junos_module,
        ("VARCHAR",),
    ),
    "junos_alarm": ValueType(r".*(?:alarm|warning) (?:set|cleared)", parse_text, ("VARCHAR",)),
    # A port in the middle of a sentence, by the names that switches give their data ports.
    "named_port": ValueType(
        r"(?:Ethernet|Eth|Et|ethernet-|et-|xe-|ge-|swp)\d(?:[\w/:.-]*\w)?",
        parse_switch_port,
        ("VARCHAR",),
    ),
    "switch_tag": ValueType(
        rf"(?:(?:{_BEFORE_MESSAGE}) +)*(?:{_MESSAGE})", parse_text, ("VARCHAR",)
    ),
    "link_alarm": ValueType(_LINK_ALARM, parse_text, ("VARCHAR",)),
    "dlb_mode": ValueType(r"flowlet|per-packet|assigned-flow", parse_text, ("VARCHAR",)),
    "link_state": ValueType(_STATES, parse_link_state, ("VARCHAR",)),
    "cli_speed": ValueType(_CLI_SPEEDS, parse_cli_speed, ("DOUBLE",)),
    "traffic": ValueType(
        r"\d[\d.,]*(?: (?:Bytes|[KMGTP]i?B))?|n/a|-", parse_traffic, ("BIGINT", "DOUBLE")
    ),
    "lane_numbers": ValueType(r"\d+(?:,\d+)*|N/A", parse_lane_numbers, ("BIGINT",)),
    "speed": ValueType(r".*?", parse_speed, ("DOUBLE",)),
    "command": ValueType(_COMMAND, parse_text, ("VARCHAR",)),
    "prompted": ValueType(_PROMPTED, parse_text, ("VARCHAR",)),
    "sonic_queue": ValueType(r"[A-Za-z][A-Za-z-]*\d+:\d+", parse_text, ("VARCHAR",)),
    "sai_path": ValueType(r"(?:[\w:-]*/)*", parse_text, ("VARCHAR",)),
    "oid": ValueType(r"oid:0x[0-9a-f]+", parse_oid, ("VARCHAR",)),
    "nvue": ValueType(r"(?:(?:link|counters|stats|netstat|qos)\.)*", parse_text, ("VARCHAR",)),
    "yang": ValueType(r"(?:\S*[/.:])?", parse_text, ("VARCHAR",)),
    "yang_port": ValueType(r"\S+", parse_yang_port, ("VARCHAR",)),
    "classes": ValueType(r"\d(?:,\d)*|N/A", parse_classes, ("VARCHAR",)),
    "class_range": ValueType(r"\d(?:-\d)?", parse_class_range, ("VARCHAR",)),
    "class_list": ValueType(r"\d(?:(?:,| ) ?\d)*", parse_class_list, ("VARCHAR",)),
    "number_word": ValueType(r"\d[\d.]*", parse_text, ("VARCHAR",)),
    "class_bits": ValueType(r"\d|Off", parse_class_bits, ("VARCHAR",)),
    "psu": ValueType(r"PSU ?\d+", parse_text, ("VARCHAR",)),
    "supply": ValueType(r"\d+", "PSU {}".format, ("VARCHAR",)),
    "fan": ValueType(r"\d+(?:/\d+)?|Fan[\w()/.-]+|PowerSupply[\d/]+", parse_fan, ("VARCHAR",)),
    "pg": ValueType(r"\d+", parse_priority_group, ("VARCHAR",)),
}
