"""What a job's processes are called in several logs: folders, process ids, groups, hashes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.collection import watch_device
from fabricobs.simulator.job import Job
from fabricobs.simulator.randomness import Random, stream
from fabricobs.simulator.shapes import GPUS_PER_HOST
from fabricobs.simulator.world import World

GroupScope = Literal["world", "data", "tensor"]

# PyTorch's description of each kind of group, which NCCL gets as the communicator's name.
_NAMES: dict[GroupScope, str] = {
    "world": "default_pg",
    "data": "DATA_PARALLEL_GROUP",
    "tensor": "TENSOR_MODEL_PARALLEL_GROUP",
}


@dataclass(frozen=True)
class Communicator:
    """A process group: `number` counts those of the job, `members` [N] are its ranks, in order.

    Number 0 is the group of the whole job, there or not.
    """

    job: Job
    number: int
    scope: GroupScope
    members: Integers
    comm_id: str

    @property
    def name(self) -> str:
        """PyTorch's description of the group."""
        return _NAMES[self.scope]

    @property
    def local_number(self) -> int:
        """Its number among the groups of each of its processes."""
        return list(_NAMES).index(self.scope)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.members)

    @cached_property
    def hosts(self) -> Integers:
        """Host [N] of each member."""
        hosts: Integers = self.job.gpus[self.members] // GPUS_PER_HOST
        return hosts


def communicators(job: Job, seed: int) -> tuple[Communicator, ...]:
    """All groups of two or more ranks; that of the whole job only where no other is as large."""
    found: list[Communicator] = []
    count = 0
    scopes: tuple[GroupScope, ...] = ("world", "data", "tensor")
    for number, scope in enumerate(scopes):
        group = np.zeros(job.ranks, dtype=np.int64) if scope == "world" else job.group(scope)
        size, groups = int((group == group[0]).sum()), int(group.max()) + 1
        if size < 2 or (scope == "world" and job.replicas == job.ranks):
            continue
        hashes = stream(seed, 21, job.index, number).randint(2**31 - 1, size=(groups, 2))
        for members, (high, low) in zip(_by_group(group), hashes, strict=True):
            count += scope != "world"
            comm_id = f"0x{int(high) << 32 | int(low):x}"
            found.append(Communicator(job, count, scope, members, comm_id))
    return tuple(found)


def memberships(groups: tuple[Communicator, ...]) -> list[list[tuple[Communicator, int]]]:
    """Each rank's groups [R] with its rank in them."""
    joined: list[list[tuple[Communicator, int]]] = [[] for _ in range(groups[0].job.ranks)]
    for group in groups:
        for place, member in enumerate(group.members):
            joined[member].append((group, place))
    return joined


def process_ids(job: Job, seed: int) -> Integers:
    """Process id [R] of each rank; the ranks of a host were started together."""
    first = stream(seed, 20, job.index).randint(20_000, 90_000, size=len(job.hosts))
    return np.repeat(first, GPUS_PER_HOST) + np.tile(np.arange(GPUS_PER_HOST), len(job.hosts))


def pointer(random: Random, base: int) -> int:
    """An address in the 256 GiB above `base`, on a boundary of 4 KiB."""
    return base + int(random.randint(2**26)) * 4096


def job_folder(directory: Path, world: World, job: Job) -> Path:
    """Where a kind of log of a job goes: below a folder of the job if there are several.

    So that each is ingested with its name: `fabricobs ingest logs/pretrain --job pretrain`.
    """
    if len(world.courses) == 1:
        return directory
    return directory.parent / job.label / directory.name


def host_offset(world: World, host: int) -> float:
    """Seconds a host's clock is ahead."""
    return watch_device(world, host, world.cluster.host_name(host), host=True).offset


def _by_group(group: Integers) -> Iterator[Integers]:
    order = np.argsort(group, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
