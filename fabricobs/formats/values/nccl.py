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


def parse_sharp(text: str) -> bool | None:
    """Read what follows a device that can reduce in the network; a plugin may not tell it."""
    return True if text else None


def parse_hash(text: str) -> str:
    """Read a communicator's hash; the log writes 0x before it, the RAS report does not."""
    return text if text.startswith("0x") else f"0x{text}"


def parse_cuda_version(text: str) -> str | None:
    """Read CUDA's or HIP's number of a version: 12090 is 12.9, 70226015 is HIP's 7.2.26015."""
    if not text.isdecimal():
        return parse_text(text)
    number = int(text)
    if number < 1_000_000:
        return f"{number // 1000}.{number % 1000 // 10}"
    return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"


def parse_nccl_version(text: str) -> str | None:
    """Read NCCL's number of a version: 22808 is 2.28.8, up to 2.8 a digit shorter."""
    if not text.isdecimal():
        return parse_text(text)
    number = int(text)
    major = 10_000 if number >= 10_000 else 1_000
    return f"{number // major}.{number % major // 100}.{number % 100}"


TYPES: dict[str, ValueType] = {
    "cuda_version": ValueType(r"\d+(?:\.[\d.]+)?", parse_cuda_version, ("VARCHAR",)),
    "nccl_version": ValueType(r"\d+(?:\.\S+)?", parse_nccl_version, ("VARCHAR",)),
    "algorithm": ValueType(r"\w+", _parse_choice(_ALGORITHMS), ("VARCHAR",)),
    "protocol": ValueType(r"\w+", _parse_choice(_PROTOCOLS), ("VARCHAR",)),
    "rank_of": ValueType(r"\d+(?:\[[^\]\s]*\])?", parse_rank_of, ("BIGINT",)),
    "gdr": ValueType(r"(?:/GDRDMA(?:\(PCI\))?)?(?:/Shared)?", parse_gdr, ("BOOLEAN",)),
    "sharp": ValueType(r"(?:/SHARP)?", parse_sharp, ("BOOLEAN",)),
    "hash": ValueType(r"(?:0x)?[0-9a-f]+", parse_hash, ("VARCHAR",)),
    "rail": ValueType(r"(?::\d*){0,2}", parse_text, ("VARCHAR",)),
    "ranks": ValueType(r"-?\d+(?:/-?\d+)*", parse_text, ("VARCHAR",)),
    "rank_list": ValueType(r"\d[\d ]*(?:\.\.\.)?", parse_text, ("VARCHAR",)),
    "parent_first": ValueType(r"\[\d+\] -?\d+->.*", parse_text, ("VARCHAR",)),
}
