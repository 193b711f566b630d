"""Facts that logs and status commands show of a fault, beside its effect on times and counters."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuDirectOff:
    """NCCL on this host found no way to let the NICs read GPU memory."""

    host: int


@dataclass(frozen=True, slots=True)
class SocketTransport:
    """NCCL on this host found no RDMA device it may use and fell back to TCP."""

    host: int


@dataclass(frozen=True, slots=True)
class ForeignNics:
    """The GPUs of this host use NICs of the other NUMA node."""

    host: int


@dataclass(frozen=True, slots=True)
class SlowPort:
    """The cable of a NIC came up at a lower speed, on both ends."""

    nic: int
    gbps: int


@dataclass(frozen=True, slots=True)
class DeadUplink:
    """A leaf sends nothing over this uplink; the port is up and receives."""

    uplink: int


@dataclass(frozen=True, slots=True)
class BadCable:
    """Bits flip on the cable of a NIC or of an uplink; both ends count errors, one more."""

    nic: int | None
    uplink: int | None


@dataclass(frozen=True, slots=True)
class LinkFlap:
    """The cable of a NIC is down for `seconds` in each of these steps (from 0)."""

    nic: int
    steps: tuple[int, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class PauseStorm:
    """A NIC keeps its leaf port paused; the leaf's watchdog may act on it."""

    nic: int
    watchdog: bool


@dataclass(frozen=True, slots=True)
class EcnOff:
    """These leaves mark no packet: thresholds too high."""

    leaves: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LossyClass:
    """On this leaf PFC is not enabled for the RDMA class."""

    leaf: int


@dataclass(frozen=True, slots=True)
class GpuError:
    """The driver reports an Xid on a GPU in each of these steps (from 0)."""

    gpu: int
    xid: int
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hang:
    """A rank never calls the first data-parallel collective of a step (from 0); all others wait."""

    rank: int
    step: int
    seconds: float  # until the watchdog gives up


Fact = (
    GpuDirectOff
    | SocketTransport
    | ForeignNics
    | SlowPort
    | DeadUplink
    | BadCable
    | LinkFlap
    | PauseStorm
    | EcnOff
    | LossyClass
    | GpuError
    | Hang
)
