"""Names the job's processes carry in several logs: process ids and the communicator's hash."""

import numpy as np
from numpy.typing import NDArray

from fabricobs.simulate.cluster import GPUS_PER_HOST, HOSTS
from fabricobs.simulate.run import stream


def process_ids(seed: int) -> NDArray[np.int64]:
    """Process id of each rank, [R]; the ranks of a host were started together."""
    first = stream(seed, 20).randint(20_000, 90_000, size=HOSTS)
    return np.repeat(first, GPUS_PER_HOST) + np.tile(np.arange(GPUS_PER_HOST), HOSTS)


def communicator_hash(seed: int) -> str:
    """Hash of the only communicator, as NCCL and its Inspector print it."""
    high, low = stream(seed, 21).randint(2**31 - 1, size=2)
    return f"0x{int(high) << 32 | int(low):x}"


def pointer(random: np.random.RandomState, base: int) -> int:
    """An address in the 256 GiB above `base`, on a boundary of 4 KiB."""
    return base + int(random.randint(2**26)) * 4096
