"""What the training job does in a step: how long it computes and how much it exchanges."""

from dataclasses import dataclass
from datetime import UTC, datetime

from fabricobs.simulate.cluster import GPUS_PER_HOST, RANKS

JOB_START = datetime(2026, 3, 2, 9, 0, 0, tzinfo=UTC)
STEPS = 300
CHECKPOINT_STEPS = (75, 225)

PARAMETERS = 13_015_449_600
SEQUENCES_PER_STEP = 64
TOKENS_PER_SEQUENCE = 4096

DATA_SECONDS = 0.012
COMPUTE_SECONDS = 1.90
OPTIMIZER_SECONDS = 0.085
OTHER_SECONDS = 0.008
CHECKPOINT_SECONDS = 6.4
WARM_UP_FACTORS = (3.1, 1.35, 1.08)  # compute of the first steps: compilation and cold caches

COMPUTE_JITTER = 0.004
TRANSFER_JITTER = 0.004


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective of every step, over all ranks.

    `count` is in elements and `message_bytes` in bytes, both as NCCL counts them: of one rank's
    part for AllGather. `nic_bytes` is what each NIC sends to the next host of its ring.
    """

    name: str
    count: int
    datatype: int
    operation: int
    message_bytes: int
    nic_bytes: int

    @property
    def algorithm_bytes(self) -> int:
        """Bytes the algorithm bandwidth is counted from."""
        return self.message_bytes * (RANKS if self.name == "AllGather" else 1)

    @property
    def bus_factor(self) -> float:
        """Bus bandwidth over algorithm bandwidth."""
        return (2 if self.name == "AllReduce" else 1) * (RANKS - 1) / RANKS


def _bytes_per_nic(bus_bytes: int) -> int:
    return bus_bytes * (RANKS - 1) // RANKS // GPUS_PER_HOST


# Gradients are summed in single precision; each rank then shares its part of the new weights.
COLLECTIVES = (
    Collective(
        name="AllReduce",
        count=PARAMETERS,
        datatype=7,
        operation=0,
        message_bytes=4 * PARAMETERS,
        nic_bytes=_bytes_per_nic(2 * 4 * PARAMETERS),
    ),
    Collective(
        name="AllGather",
        count=PARAMETERS // RANKS,
        datatype=9,
        operation=0,
        message_bytes=2 * PARAMETERS // RANKS,
        nic_bytes=_bytes_per_nic(2 * PARAMETERS),
    ),
)


def throughput_teraflops(step_seconds: float) -> float:
    """Model TFLOP/s of one GPU at a step time in seconds, six operations a parameter and token."""
    operations = 6 * PARAMETERS * SEQUENCES_PER_STEP * TOKENS_PER_SEQUENCE
    return operations / RANKS / step_seconds / 1e12
