"""What hosts print: their devices, GPUs and links, and addresses that were scraped."""

import re

from fabricobs.formats.identity.vocabulary import (
    INTERFACE,
    NET_DEVICE,
    RDMA_DEVICE,
    SWITCH_PORT,
    is_rdma_device,
)
from fabricobs.formats.values.kinds import NO_VALUE, ValueType
from fabricobs.formats.values.numbers import parse_whole
from fabricobs.formats.values.texts import parse_text

_INSTANCE_PORT = re.compile(r"(?:https?://)?(.+?)(?::\d+)?(?:/.*)?")


def parse_instance(text: str) -> str | None:
    """Read the device of a scraped address, gpu-a07:9100 or https://gpu-a07:9100/metrics."""
    found = _INSTANCE_PORT.fullmatch(text.strip())
    return parse_text(found[1].strip("[]")) if found is not None else None


def parse_rdma_port(text: str) -> str:
    """Read a port of an RDMA device however its number is put there: mlx5_0/ports/1, mlx5_0:1."""
    return re.sub(r"/ports/|[/: ](?:port )?", "/", text.replace("'", ""))


def parse_gpu(text: str) -> str:
    """Name a GPU by its index, as the topology matrix does."""
    return f"GPU{int(text)}"


def parse_gpu_number(text: str) -> int:
    """Read the index of a GPU that DCGM calls `GPU 0`."""
    return int(text.removeprefix("GPU "))


def parse_nvlink(text: str) -> str:
    """Name a NVLink, and a counter of it: Link 3: Replay Errors."""
    return f"NV{text.replace(':', '')}"


# Bits of the driver's `indep_throttle_status` (SMU_THROTTLER_..., amdgpu_smu.h) and what NVML calls
# it: power and current 4, temperatures 32, hot regulators and processors 64, other 8.
_THROTTLERS = ((range(24), 4), (range(32, 44), 32), (range(44, 48), 64), (range(48, 64), 8))
_ALL_BITS = (1 << 16) - 1, (1 << 32) - 1, (1 << 64) - 1  # what a driver tells that does not know


def parse_throttlers(text: str) -> int | None:
    """Read which limits hold an AMD GPU back, as NVML's bits; 0 is none, or not told (MI300)."""
    if text.lower() in NO_VALUE:
        return None
    status = int(text)
    if status in _ALL_BITS:
        return None
    told = 0
    for bits, reason in _THROTTLERS:
        told |= reason if any(status >> bit & 1 for bit in bits) else 0
    return told or None


def parse_mhz(text: str) -> float | None:
    """Read a clock that rocm-smi prints, (800Mhz) or 800, in MHz."""
    number = text.strip("()").removesuffix("Mhz")
    return None if number.lower() in NO_VALUE else float(number)


def parse_mtu(text: str) -> int:
    """Read an ibv_mtu in bytes: 1 is 256, 5 is 4096."""
    if text not in {"1", "2", "3", "4", "5"}:
        raise ValueError(f"{text!r} is no ibv_mtu")
    return 128 << int(text)


# What a loop over NICs prints above the output of a command that names none. Only a line that is
# drawn may name a port of a switch, too: `interface Ethernet1/1` is a configuration.
_ANY_PORT = rf"(?:{RDMA_DEVICE}|{NET_DEVICE}|{SWITCH_PORT})"
_HOST_PORT = rf"(?:{RDMA_DEVICE}|{NET_DEVICE})"
_DRAWN = r"(?:[#=*~+>_:-]+ *\[?|\[)"
_SAID = r"(?i:(?:(?:interface|intf|iface|ifname|netdev|device|dev|nic|hca|port)[ :=]+)?)"
_ALIKE = rf"(?:[ ,/|:(#=>\[-]+{_HOST_PORT}\)?)?"  # the same NIC by its other name
_INTERFACE_HEADING = (
    rf"{_DRAWN} *{_SAID}{_ANY_PORT}{_ALIKE}[\]:]* *[#=*~+<_:-]*"
    rf"|(?i:(?:interface|intf|iface|ifname|netdev|nic)(?: ?= ?|: ?)){_HOST_PORT}{_ALIKE}:?"
    # Cumulus writes its configuration as YAML, in which a port is a key: `swp1:`.
    rf"|(?!swp){_HOST_PORT}(?: \({_HOST_PORT}\))?:?"
)


def parse_interface_heading(text: str) -> str:
    """Return the port that a heading names; of an RDMA device and its net device the latter."""
    names = [found[0] for found in INTERFACE.finditer(text)]
    return next((name for name in names if not is_rdma_device(name)), names[0])


TYPES: dict[str, ValueType] = {
    "node": ValueType(r"[A-Z]+/[0-9a-f-]+", parse_text, ("VARCHAR",)),
    "ifname": ValueType(r"[a-z][a-z0-9]*\d[a-z0-9]*", parse_text, ("VARCHAR",)),
    # An argument of a command: what stands behind it is no part of it.
    "interface": ValueType(r"\w[\w.-]*", parse_text, ("VARCHAR",)),
    "interface_heading": ValueType(_INTERFACE_HEADING, parse_interface_heading, ("VARCHAR",)),
    "host_interface": ValueType(_HOST_PORT, parse_text, ("VARCHAR",)),
    "drawn": ValueType(r"[#=*~+>_-]+", parse_text, ("VARCHAR",)),
    # Two marks and more, so that it is no sign before a number, an option or a comment.
    "banner": ValueType(
        r"(?:#{2,}|={2,}|\*{2,}|~{2,}|\+{2,}|>{2,}|_{2,}|-{2,}|@{2,}|%{2,}|:{2,})",
        parse_text,
        ("VARCHAR",),
    ),
    "banner_end": ValueType(r" *[#=*~+<>_@%:-]*", parse_text, ("VARCHAR",)),
    # What loops number, which is no host's name: `run2`, `sample 12`.
    "numbered_sample": ValueType(
        r"(?i:sample|run|iter|iteration|round|loop|poll|snap|snapshot|pass|cycle|attempt|try|step|no\.?)"
        r"[-_ #]*\d+",
        parse_text,
        ("VARCHAR",),
    ),
    "drawn_end": ValueType(r":? *[#=*~+<_-]*", parse_text, ("VARCHAR",)),
    "between": ValueType(r"[ ,/|:]+", parse_text, ("VARCHAR",)),
    # A prompt or what `set -x` prints, and commands that run others; the options of a command.
    "shell": ValueType(
        r"(?:[$#+>%]+ *)?(?:(?:sudo|time|timeout \d+) +)*", parse_text, ("VARCHAR",)
    ),
    "options": ValueType(r"(?:--?[A-Za-z][\w-]* +)*", parse_text, ("VARCHAR",)),
    # With leading zeros or of a big job: `r3` may number a run.
    "rank_number": ValueType(r"\d{3,}", parse_whole, ("BIGINT",)),
    # A name with a number, so that it is that of a host and not a word.
    "numbered_host": ValueType(r"[A-Za-z][A-Za-z_.-]*\d[\w.-]*", parse_text, ("VARCHAR",)),
    "kernel_release": ValueType(
        r"\d\.\d{1,2}\.\d{1,3}-[\w.+~-]*[A-Za-z][\w.+~-]*", parse_text, ("VARCHAR",)
    ),
    "gpu_number": ValueType(r"GPU \d+", parse_gpu_number, ("BIGINT",)),
    "instance": ValueType(r"\S+", parse_instance, ("VARCHAR",)),
    "rdma_port": ValueType(r"'?[\w.-]+'?(?:/ports/|/| port )\d+", parse_rdma_port, ("VARCHAR",)),
    "counted_port": ValueType(
        rf"{RDMA_DEVICE}(?:/ports/|[/: ](?:port )?)\d+", parse_rdma_port, ("VARCHAR",)
    ),
    "colon": ValueType(r":?", parse_text, ("VARCHAR",)),
    "separated": ValueType(r" *[:=] *| +", parse_text, ("VARCHAR",)),
    "ibv_mtu": ValueType(r"\d", parse_mtu, ("BIGINT",)),
    "pci": ValueType(
        r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?", parse_text, ("VARCHAR",)
    ),
    # As lspci prints it, mostly without the domain.
    "pci_slot": ValueType(
        r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d", parse_text, ("VARCHAR",)
    ),
    "pcie_limited": ValueType(
        r"[\d.]+ Gb/s available PCIe bandwidth, .*", parse_text, ("VARCHAR",)
    ),
    "throttlers": ValueType(r"\d+|N/A", parse_throttlers, ("BIGINT",)),
    "mhz": ValueType(r"\(?\d+(?:\.\d+)?(?:Mhz)?\)?|N/A", parse_mhz, ("DOUBLE",)),
    "gpu": ValueType(r"\d+", parse_gpu, ("VARCHAR",)),
    "topo_nic": ValueType(r"NIC\d+", parse_text, ("VARCHAR",)),
    "nvlink": ValueType(r"Link \d+", parse_nvlink, ("VARCHAR",)),
    "nvlink_errors": ValueType(r"Link \d+: [A-Z][\w ]*", parse_nvlink, ("VARCHAR",)),
}
