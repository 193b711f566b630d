"""How the InfiniBand tools print GUIDs, LIDs, lanes, rates and states."""

from fabricobs.formats.values.kinds import Unfit, ValueType
from fabricobs.formats.values.numbers import beyond_64_bits, in_64_bits

# Gb/s of data one lane carries, by the names and signalling rates the tools print.
_LANE_GBPS = {
    "SDR": 2.5,
    "DDR": 5.0,
    "QDR": 10.0,
    "FDR10": 10.0,
    "FDR": 14.0,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
    "14.0625": 14.0,
    "25.78125": 25.0,
    "53.125": 50.0,
    "106.25": 100.0,
    "212.5": 200.0,
}
# PortInfo codes: lanes by LinkWidthActive; Gb/s a lane by the plain and the extended speed.
_LANES_BY_CODE = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
_LANE_BY_CODE = {1: 2.5, 2: 5.0, 4: 10.0}
_LANE_BY_EXTENDED_CODE = {1: 14.0, 2: 25.0, 4: 50.0, 8: 100.0, 16: 200.0}
_UP = frozenset({"active", "act", "up", "linkup", "yes"})
_ALL_PORTS = "255"
_NO_VALUE = frozenset({"", "na", "n/a", "-1", "0xfffffffffffffffe"})


def parse_guid(text: str) -> str:
    """Read a GUID; some tools drop leading zeros, others the 0x."""
    return f"0x{int(text, 16):016x}"


def parse_lid(text: str) -> str:
    """Name a device by its LID, where a tool tells no more."""
    return f"lid {int(text, 0)}"


def parse_port(text: str) -> str:
    """Read a port number; 255 stands for the sum over all ports."""
    return "ALL" if text == _ALL_PORTS else text


def parse_hex_port(text: str) -> str:
    """Read a port number printed in hexadecimal."""
    return str(int(text, 16))


def parse_lanes(text: str) -> int:
    """Read a link width such as 4X."""
    return int(text.rstrip("xX"))


def parse_lane(text: str) -> float | None:
    """Read the rate of a lane, by name or number, as the data rate it is sold by."""
    known = _LANE_GBPS.get(text)
    return known if known is not None else None if text.startswith("?") else float(text)


def parse_mlxlink_speed(text: str) -> float | None:
    """Read mlxlink's speed of a lane, IB-NDR; that of an Ethernet port is of all lanes: null."""
    return _LANE_GBPS.get(text.removeprefix("IB-"))


def parse_mlxlink_device(text: str) -> str:
    """Name the port mlxlink was asked for; without another it is the first of an RDMA device."""
    return f"{text}/1" if "_" in text and "/" not in text else text


def parse_lanes_code(text: str) -> int | None:
    """Read PortInfo's code of a link width."""
    return _LANES_BY_CODE.get(_code(text))


def parse_lane_code(text: str) -> float | None:
    """Read PortInfo's code of a link speed: plain, extended and Mellanox's own, a byte each."""
    code = _code(text)
    plain, extended, own = code & 0xFF, code >> 8 & 0xFF, code >> 16 & 0xFF
    if extended:
        return _LANE_BY_EXTENDED_CODE.get(extended)
    return _LANE_GBPS["FDR10"] if own else _LANE_BY_CODE.get(plain)


def parse_mtu_code(text: str) -> int | None:
    """Read PortInfo's code of an MTU: 1 is 256 bytes, 5 is 4096."""
    code = _code(text)
    return 128 << code if 1 <= code <= 5 else None


def parse_state(text: str) -> str | None:
    """Read a port's state as up or down: 4: ACTIVE, Init, PortState 4, no (Cable is unplugged).

    PortState 0 is none.
    """
    word = text.rpartition(":")[2].strip().lower().partition(" ")[0]
    if word == "0" or word in _NO_VALUE:
        return None
    return "up" if word in _UP or word == "4" else "down"


def parse_words(text: str) -> int | Unfit | None:
    """Read a data counter, which counts words of four bytes, in bytes."""
    words = parse_pma(text)
    if not isinstance(words, int):
        return words
    return words * 4 if abs(words) < 1 << 61 else beyond_64_bits(text)


def parse_pma(text: str) -> int | Unfit | None:
    """Read a counter printed decimal or as 0x hexadecimal; the tools' sentinels are no value."""
    if text.lower() in _NO_VALUE:
        return None
    return in_64_bits(int(text.replace(",", ""), 0), text)


def _code(text: str) -> int:
    return 0 if text.lower() in _NO_VALUE else int(text, 0)


TYPES: dict[str, ValueType] = {
    "guid": ValueType(r"(?:0x)?[0-9a-fA-F]{8,16}", parse_guid, ("VARCHAR",)),
    "lid": ValueType(r"0x[0-9a-fA-F]+|\d+", parse_lid, ("VARCHAR",)),
    "ib_port": ValueType(r"\d+", parse_port, ("VARCHAR",)),
    "hex_port": ValueType(r"[0-9a-f]+", parse_hex_port, ("VARCHAR",)),
    "lanes": ValueType(r"\d+[xX]", parse_lanes, ("BIGINT",)),
    "lane": ValueType(r"[A-Z]+\d*|\d+(?:\.\d*)?|\?+", parse_lane, ("DOUBLE",)),
    "mlxlink_speed": ValueType(r"\S+", parse_mlxlink_speed, ("DOUBLE",)),
    "mlxlink_device": ValueType(r"\S+?", parse_mlxlink_device, ("VARCHAR",)),
    "lanes_code": ValueType(r"\d+", parse_lanes_code, ("BIGINT",)),
    "lane_code": ValueType(r"\d+", parse_lane_code, ("DOUBLE",)),
    "ib_mtu": ValueType(r"\d+", parse_mtu_code, ("BIGINT",)),
    "state": ValueType(r"(?:\d+: *)?\w+", parse_state, ("VARCHAR",)),
    "words": ValueType(r"\d+", parse_words, ("BIGINT",)),
    "pma": ValueType(r"\S+", parse_pma, ("BIGINT",)),
}
