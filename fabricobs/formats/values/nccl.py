"""What NCCL prints of ranks, algorithms and communicators."""

from collections.abc import Callable

from fabricobs.formats.values.kinds import Unfit, Value, ValueType
from fabricobs.formats.values.numbers import in_64_bits
from fabricobs.formats.values.texts import parse_text

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


def parse_rank_of(text: str) -> int | Unfit:
    """Read the rank of `15[b7000]`; the brackets hold a device."""
    return in_64_bits(int(text.partition("[")[0]), text)


def parse_gdr(text: str) -> bool:
    """Read what follows the device of a NET connection: GPUDirect RDMA is told, its absence not."""
    return text.startswith("/GDRDMA")


def parse_hash(text: str) -> str:
    """Read a communicator's hash; the log writes 0x before it, the RAS report does not."""
    return text if text.startswith("0x") else f"0x{text}"


TYPES: dict[str, ValueType] = {
    "algorithm": ValueType(r"\w+", _parse_choice(_ALGORITHMS), ("VARCHAR",)),
    "protocol": ValueType(r"\w+", _parse_choice(_PROTOCOLS), ("VARCHAR",)),
    "rank_of": ValueType(r"\d+(?:\[[^\]\s]*\])?", parse_rank_of, ("BIGINT",)),
    "gdr": ValueType(r"(?:/GDRDMA(?:\(PCI\))?)?(?:/Shared)?", parse_gdr, ("BOOLEAN",)),
    "hash": ValueType(r"(?:0x)?[0-9a-f]+", parse_hash, ("VARCHAR",)),
    "rail": ValueType(r"(?::\d*){0,2}", parse_text, ("VARCHAR",)),
    "ranks": ValueType(r"-?\d+(?:/-?\d+)*", parse_text, ("VARCHAR",)),
    "rank_list": ValueType(r"\d[\d ]*(?:\.\.\.)?", parse_text, ("VARCHAR",)),
    "parent_first": ValueType(r"\[\d+\] -?\d+->.*", parse_text, ("VARCHAR",)),
}
